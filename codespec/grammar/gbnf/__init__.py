"""GBNF, llama.cpp's notation, to rules."""
