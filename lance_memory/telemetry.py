"""Figures for whoever operates an agent: counters and histograms, through OpenTelemetry's API.

Without an SDK nothing is counted and little is spent. With one, whatever exporter it has gets them;
`serve_prometheus` (extra `prometheus`) is the shortest way. No figure has content: attributes are
names of steps, reasons, plans and tenants.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from lance_memory.extras import require

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter

__all__ = ["count", "observe", "serve_prometheus"]

_SCOPE = "lance_memory"
EXTRA = "prometheus"


def count(name: str, amount: int = 1, **attributes: str) -> None:
    """Add to the counter `lance_memory.<name>`."""
    _counter(name).add(amount, attributes)


def observe(name: str, value: float, *, unit: str = "s", **attributes: str) -> None:
    """Add a value to the histogram `lance_memory.<name>`."""
    _histogram(name, unit).record(value, attributes)


def serve_prometheus(*, port: int, host: str = "127.0.0.1") -> None:
    """Make this process's figures readable by Prometheus at `http://host:port/metrics`.

    For a process that has set up no exporter of OpenTelemetry's itself.

    Raises:
        MissingExtraError: the extra `prometheus` is not installed.
        OSError: the port is taken.
    """
    metrics: Any = require("opentelemetry.metrics", EXTRA)
    sdk: Any = require("opentelemetry.sdk.metrics", EXTRA)
    exporter: Any = require("opentelemetry.exporter.prometheus", EXTRA)
    client: Any = require("prometheus_client", EXTRA)
    client.start_http_server(port, addr=host)
    metrics.set_meter_provider(sdk.MeterProvider([exporter.PrometheusMetricReader()]))


@cache
def _meter() -> Meter:
    from opentelemetry.metrics import get_meter

    return get_meter(_SCOPE)


@cache
def _counter(name: str) -> Any:
    return _meter().create_counter(f"{_SCOPE}.{name}")


@cache
def _histogram(name: str, unit: str) -> Any:
    return _meter().create_histogram(f"{_SCOPE}.{name}", unit=unit)
