-- Keys that do their work where a completion or an edit is shown, and what they did before where none is.

local M = {}

local api = vim.api

local DESCRIPTIONS = {
  accept = 'accept the completion, or go to the next edit or apply it',
  accept_word = 'accept the next word of the completion',
  accept_line = 'accept the next line of the completion',
  next = 'show the next completion',
  previous = 'show the previous completion',
  dismiss = 'dismiss the completion, or drop the next edit',
  trigger = 'ask for completions',
  next_edit = 'ask for the next edit',
  drop_edit = 'drop the next edit',
}
local MARK = 'codespec: '

-- Keys by mode: all of Insert mode are for completions, but one.
local NORMAL = { accept = true, next_edit = true, drop_edit = true }
local NOT_INSERT = { drop_edit = true }

-- What a key does where an edit is shown.
local WITH_EDIT = { accept = 'apply-edit', dismiss = 'drop-edit', drop_edit = 'drop-edit' }

local function raw(key)
  return api.nvim_replace_termcodes(key, true, true, true)
end

-- The mapping of a key among those given, as nvim_set_keymap takes it; ours is none.
local function find(mappings, key)
  for _, mapping in ipairs(mappings) do
    if raw(mapping.lhs) == raw(key) and not vim.startswith(mapping.desc or '', MARK) then
      return mapping
    end
  end
end

-- Keys that do what a mapping does.
local function proxy(mode, action, mapping)
  local name = ('<Plug>(codespec-before-%s-%s)'):format(mode, action)
  local rhs = (mapping.rhs or ''):gsub('<SID>', ('<SNR>%d_'):format(mapping.sid or 0))
  local function is(option)
    return mapping[option] == 1
  end
  api.nvim_set_keymap(mode, name, rhs, {
    expr = is('expr'),
    noremap = is('noremap'),
    silent = is('silent'),
    script = is('script'),
    callback = mapping.callback,
    replace_keycodes = is('replace_keycodes') or nil,
  })
  return name
end

-- What a key is to do now; nil where nothing is shown that it is for.
local function wanted(mode, action)
  if action == 'trigger' or action == 'next_edit' then
    return action:gsub('_', '-')
  elseif mode == 'i' and require('codespec.engine').remainder() then
    return action:gsub('_', '-')
  elseif WITH_EDIT[action] and require('codespec.next_edit').is_shown() then
    return WITH_EDIT[action]
  end
end

local function map(mode, buffer, action, key)
  local own = find(api.nvim_buf_get_keymap(buffer, mode), key)
  vim.keymap.set(mode, key, function()
    local name = wanted(mode, action)
    if name then
      return ('<Plug>(codespec-%s)'):format(name)
    end
    local mapping = own or find(api.nvim_get_keymap(mode), key)
    -- The key itself, which is not mapped again since the mapping begins with it.
    return mapping and proxy(mode, action, mapping) or key
  end, { buffer = buffer, expr = true, remap = true, silent = true, desc = MARK .. DESCRIPTIONS[action] })
end

-- Map the keys in a buffer.
function M.map(buffer, keys)
  for action, key in pairs(keys) do
    if key and not NOT_INSERT[action] then
      map('i', buffer, action, key)
    end
    if key and NORMAL[action] then
      map('n', buffer, action, key)
    end
  end
end

return M
