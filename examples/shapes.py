"""Areas and perimeters of plane figures."""

import math
from dataclasses import dataclass


@dataclass
class Rectangle:
    width: float
    height: float

    def area(self) -> float:
        return self.width * self.height

    def perimeter(self) -> float:
        return 2 * (self.width + self.height)


@dataclass
class Circle:
    radius: float

    def area(self) -> float:
        

    def perimeter(self) -> float:
        return 2 * math.pi * self.radius


def total_area(shapes: list[Rectangle | Circle]) -> float:
    return sum(shape.area() for shape in shapes)
