"""Settings for Django's own cache tests, on the server that the environment variable LARDER_SERVER names."""

import os

# By both names, with shared memory in front of the server and without.
SHARED = os.environ["LARDER_SHARED_MEMORY"] if os.environ["DJANGO_SHARED_MEMORY"] == "shared" else None
CACHES = {
    "default": {
        "BACKEND": "larder.django.LarderCache",
        "LOCATION": os.environ["LARDER_SERVER"],
        "OPTIONS": {"serde": "pickle", "shared_memory": SHARED},
    }
}
DATABASES = {name: {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"} for name in ("default", "other")}
INSTALLED_APPS = ["cache"]
SECRET_KEY = "for tests only"
USE_TZ = False
