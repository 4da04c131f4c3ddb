"""How long somebody who types waits, with codespec and with llama.vim."""
