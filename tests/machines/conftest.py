from tests.cloud.conftest import aws, moto_endpoint  # noqa: F401  fixtures
