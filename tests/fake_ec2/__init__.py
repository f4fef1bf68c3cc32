"""A fake EC2 that runs user-data: moto keeps the books, and each instance that it says is running runs as processes here.

    cloud.py       FakeEC2: the whole, and what a test does to it (interrupt, kill, cut, limit capacity, throttle, advance time)
    api.py         what stands before moto's server: a log, client tokens, throttling, what moto does not refuse
    gaps.py        what moto's groups lack: capacity that runs out, spot members, scheduled actions that fire
    price_list.py  what machines cost at full price, which moto does not know
    metadata.py    the metadata service (IMDSv2) of an instance
    instance.py    an instance: its disk, its shims, its user-data, its end
    hosts.py       where its processes run: a network namespace each (namespaces.py), or, where those are not permitted,
                   127.0.0.x (loopback.py)
    world.py       what an account needs before machines can be rented, and the settings that name it
    serving.py     servers on sockets that may have been made in another namespace

Nothing here sends a packet beyond this machine: namespaces are joined by a bridge in a namespace of its own.
"""
