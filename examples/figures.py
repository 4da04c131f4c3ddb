"""Plane figures as plain data."""

import math
from dataclasses import dataclass


@dataclass
class Rectangle:
    width: float
    height: float

    def area(self) -> float:
        return self.width * self.height

    def __str__(self) -> str:
        return f"area: {self.area():.2f}"


@dataclass
class Circle:
    radius: float

    def area(self) -> float:
        return math.pi * self.radius**2

    def __str__
