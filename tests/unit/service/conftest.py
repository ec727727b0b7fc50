"""The fixtures of a service, for all tests of its parts."""

from __future__ import annotations

from tests.service_fixtures import clock, service

__all__ = ["clock", "service"]
