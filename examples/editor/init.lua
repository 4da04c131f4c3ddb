-- codespec in any Neovim from 0.7.2 on, beside your own configuration: nvim --clean -u init.lua shop.py
local here = vim.fn.fnamemodify(vim.env.MYVIMRC or 'init.lua', ':p:h')
vim.opt.runtimepath:prepend(here .. '/../../editors/neovim')
require('codespec').setup()
