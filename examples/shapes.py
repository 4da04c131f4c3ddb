"""Areas of plane figures."""

import math
from dataclasses import dataclass


@dataclass
class Rectangle:
    width: float
    height: float

    def area(self) -> float:
        return self.width * self.height


@dataclass
class Circle:
    radius: float

    def __post_init__(self) -> None:
        if not isinstance(self.radius, float):
            raise 

    def area(self) -> float:
        return math.pi * self.radius**2


def total_area(shapes: list[Rectangle | Circle]) -> float:
    return sum(shape.area() for shape in shapes)
