-- The command :Codespec and the <Plug> mappings; nothing is loaded before they are used.

if vim.g.loaded_codespec then
  return
end
vim.g.loaded_codespec = true

vim.api.nvim_create_user_command('Codespec', function(call)
  require('codespec.command').run(call.fargs)
end, {
  nargs = '*',
  desc = 'codespec: status, draft, grammar, edit, pause, resume, restart, log, trace',
  complete = function(lead, line)
    return require('codespec.command').complete(lead, line)
  end,
})

-- <C-g>u makes what is accepted one step of undo.
for name, keys in pairs({
  ['accept'] = "<C-g>u<Cmd>lua require('codespec').accept()<CR><C-g>u",
  ['accept-word'] = "<C-g>u<Cmd>lua require('codespec').accept_word()<CR><C-g>u",
  ['accept-line'] = "<C-g>u<Cmd>lua require('codespec').accept_line()<CR><C-g>u",
  ['next'] = "<Cmd>lua require('codespec').next()<CR>",
  ['previous'] = "<Cmd>lua require('codespec').previous()<CR>",
  ['dismiss'] = "<Cmd>lua require('codespec').dismiss()<CR>",
  ['trigger'] = "<Cmd>lua require('codespec').trigger()<CR>",
}) do
  vim.keymap.set('i', ('<Plug>(codespec-%s)'):format(name), keys, { silent = true })
end

for name, call in pairs({ ['next-edit'] = 'next_edit', ['apply-edit'] = 'apply_edit', ['drop-edit'] = 'drop_edit' }) do
  local keys = ("<Cmd>lua require('codespec').%s()<CR>"):format(call)
  vim.keymap.set('n', ('<Plug>(codespec-%s)'):format(name), keys, { silent = true })
  vim.keymap.set('i', ('<Plug>(codespec-%s)'):format(name), '<C-g>u' .. keys .. '<C-g>u', { silent = true })
end
