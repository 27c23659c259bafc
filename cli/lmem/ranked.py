"""The options of a search that say how candidates become an order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lmem.options import Name, age

if TYPE_CHECKING:
    from lance_memory import Decay, MemoryView, Ranking, Recency

__all__ = ["Ranked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """How candidates become an order."""

    fusion: Annotated[str, typer.Option(help="weighted, or rrf (reciprocal ranks).")] = "weighted"
    neighbours: Annotated[
        float, typer.Option(help="How much those around it in its session lift a memory; 0: none.")
    ] = 1.0
    half_life: Annotated[
        Name, typer.Option(metavar="AGE", help="Prefer what is new; the half-life: 12h, 30d, 8w.")
    ] = None
    floor: Annotated[
        float | None,
        typer.Option(
            help="What age leaves of a score at least, with --half-life (else 0.5) or --decay "
            "(else 0)."
        ),
    ] = None
    importance: Annotated[float, typer.Option(help="How much importance counts, 0..1.")] = 0.0
    decay: Annotated[
        Name,
        typer.Option(
            metavar="AGE",
            help="Prefer what is strong: important, new, and recalled by recorded queries; "
            "the half-life: 12h, 30d, 8w.",
        ),
    ] = None
    late: Annotated[
        bool, typer.Option("--late", help="Compare the first 50 again, token by token.")
    ] = False

    def ranking(self, view: MemoryView) -> Ranking:
        """As the library takes it."""
        from lance_memory import LateInteraction, Ranking

        return Ranking(
            fusion=self.fusion,
            neighbours=self.neighbours,
            recency=self._recency(),
            importance=self.importance,
            decay=self._decay(),
            reranker=LateInteraction(view.embedder) if self.late else None,
        )

    def _recency(self) -> Recency | None:
        from lance_memory import Recency

        if self.half_life is None:
            if self.floor is not None and self.decay is None:
                raise typer.BadParameter("--floor says what --half-life leaves; give both")
            return None
        return Recency(half_life=age(self.half_life, "--half-life"), **self._floor())

    def _decay(self) -> Decay | None:
        from lance_memory import Decay

        if self.decay is None:
            return None
        return Decay(half_life=age(self.decay, "--decay"), **self._floor())

    def _floor(self) -> dict[str, Any]:
        return {} if self.floor is None else {"floor": self.floor}
