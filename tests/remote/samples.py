"""A little program in five languages."""

SAMPLES = {
    "python": '''import json
from pathlib import Path


class Inventory:
    """Items by name, kept in a file."""

    def __init__(self, path):
        self.path = Path(path)
        self.items = {}

    def load(self):
        if self.path.exists():
            with open(self.path) as file:
                self.items = json.load(file)
        return self.items

    def add(self, name, count=1):
        if count < 1:
            raise ValueError("count must be positive")
        self.items[name] = self.items.get(name, 0) + count

    def remove(self, name):
        if name not in self.items:
            raise KeyError(name)
        del self.items[name]

    def total(self):
        return sum(self.items.values())
''',
    "javascript": """const fs = require('fs');

class Inventory {
  constructor(path) {
    this.path = path;
    this.items = new Map();
  }

  load() {
    if (fs.existsSync(this.path)) {
      const data = JSON.parse(fs.readFileSync(this.path, 'utf8'));
      for (const [name, count] of Object.entries(data)) {
        this.items.set(name, count);
      }
    }
    return this.items;
  }

  add(name, count = 1) {
    if (count < 1) {
      throw new Error('count must be positive');
    }
    this.items.set(name, (this.items.get(name) || 0) + count);
  }

  total() {
    let sum = 0;
    for (const count of this.items.values()) {
      sum += count;
    }
    return sum;
  }
}
""",
    "go": """package inventory

import (
	"encoding/json"
	"errors"
	"os"
)

type Inventory struct {
	path  string
	items map[string]int
}

func New(path string) *Inventory {
	return &Inventory{path: path, items: make(map[string]int)}
}

func (inv *Inventory) Load() error {
	data, err := os.ReadFile(inv.path)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, &inv.items)
}

func (inv *Inventory) Add(name string, count int) error {
	if count < 1 {
		return errors.New("count must be positive")
	}
	inv.items[name] += count
	return nil
}

func (inv *Inventory) Total() int {
	sum := 0
	for _, count := range inv.items {
		sum += count
	}
	return sum
}
""",
    "rust": """use std::collections::HashMap;

pub struct Inventory {
    path: String,
    items: HashMap<String, u32>,
}

impl Inventory {
    pub fn new(path: &str) -> Self {
        Inventory {
            path: path.to_string(),
            items: HashMap::new(),
        }
    }

    pub fn add(&mut self, name: &str, count: u32) -> Result<(), String> {
        if count < 1 {
            return Err("count must be positive".to_string());
        }
        let entry = self.items.entry(name.to_string()).or_insert(0);
        *entry += count;
        Ok(())
    }

    pub fn remove(&mut self, name: &str) -> Option<u32> {
        self.items.remove(name)
    }

    pub fn total(&self) -> u32 {
        self.items.values().sum()
    }
}
""",
    "c": """#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 100

struct item {
    char name[32];
    int count;
};

static struct item items[MOST];
static int used = 0;

int find(const char *name) {
    for (int i = 0; i < used; i++) {
        if (strcmp(items[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

int add(const char *name, int count) {
    int place = find(name);
    if (place < 0) {
        if (used == MOST) {
            return 0;
        }
        place = used++;
        strncpy(items[place].name, name, sizeof items[place].name - 1);
        items[place].count = 0;
    }
    items[place].count += count;
    return 1;
}
""",
}
