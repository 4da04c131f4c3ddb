-- codespec in any Neovim from 0.7.2 on, beside your own configuration: nvim --clean -u init.lua shop.py
local here = vim.fn.fnamemodify(debug.getinfo(1, 'S').source:sub(2), ':p:h')
vim.opt.runtimepath:prepend(here .. '/../../editors/neovim')
require('codespec').setup()
