"""Many objects at once: small ones by the storage's quick reader, a hundred in flight; the others, and those that it could not
hand over, by threads. Memory does not grow with their number."""

import asyncio
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

from nightowl.cloud.objects import ObjectStore
from nightowl.cloud.quick import SMALL_BYTES
from nightowl.cloud.storage import ObjectChanged, Storage, Wanted

IN_FLIGHT = 128
NUM_THREADS = 64
_LOOK_EVERY_SECONDS = 0.1


def fetch_all(storage: Storage, objects: ObjectStore, todo: Iterable[Wanted]) -> Iterator[int | None]:
    """Have all of `todo` in `objects`; yields how many bytes were fetched for each, None for one that was here already.

    The first exception, or an interruption, ends it: what runs is waited for, what waits is dropped.
    """
    done: list[int | None] = []

    async def work() -> None:
        for wanted in waiting:
            done.append(await _ensure(storage, objects, wanted))  # noqa: PERF401 (many of these share the list)

    waiting = iter(todo)
    with asyncio.Runner() as runner:
        runner.get_loop().set_default_executor(ThreadPoolExecutor(NUM_THREADS))
        workers = [runner.get_loop().create_task(work()) for _ in range(IN_FLIGHT)]
        try:
            while not all(worker.done() for worker in workers):
                runner.run(_a_while(workers))
                yield from done
                done.clear()
        except ObjectChanged:
            raise  # another round follows: what is on its way is of use to it
        except BaseException:
            storage.give_up()
            raise


async def _a_while(workers: "list[asyncio.Task[None]]") -> None:
    """Let them work. Raises what one of them raised."""
    ended, _ = await asyncio.wait(workers, timeout=_LOOK_EVERY_SECONDS, return_when=asyncio.FIRST_EXCEPTION)
    for worker in ended:
        worker.result()


async def _ensure(storage: Storage, objects: ObjectStore, wanted: Wanted) -> int | None:
    local = storage.local(wanted)
    if local and objects.adopt(wanted, local):
        return None
    if (wanted.num_bytes or 0) <= SMALL_BYTES:
        if objects.has(wanted):
            return None
        body = await storage.read(wanted)
        if body is not None:
            objects.put(wanted, body)
            return len(body)
    return await asyncio.to_thread(objects.ensure, storage, wanted)
