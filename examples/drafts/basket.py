"""What customers have put into their baskets."""

from dataclasses import dataclass, field


@dataclass
class Item:
    name: str
    price: float
    count: int = 1

    def total(self) -> float:
        return self.price * self.count


@dataclass
class Basket:
    items: list[Item] = field(default_factory=list)

    def add(self, name: str, price: float, count: int = 1) -> None:
        if count < 1:
            raise ValueError("count must be positive")
        self.items.append(Item(name, price, count))

    def total(self) -> float:
        return sum(item.total() for item in self.items)

    def names(self) -> list[str]:
        return [item.name for item in self.items]
