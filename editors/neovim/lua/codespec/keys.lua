-- Keys of Insert mode that do their work where a completion is shown, and what they did before where none is.

local M = {}

local api = vim.api

local DESCRIPTIONS = {
  accept = 'accept the completion',
  accept_word = 'accept the next word of the completion',
  accept_line = 'accept the next line of the completion',
  next = 'show the next completion',
  previous = 'show the previous completion',
  dismiss = 'dismiss the completion',
  trigger = 'ask for completions',
}
local MARK = 'codespec: '

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
local function proxy(action, mapping)
  local name = ('<Plug>(codespec-before-%s)'):format(action)
  local rhs = (mapping.rhs or ''):gsub('<SID>', ('<SNR>%d_'):format(mapping.sid or 0))
  local function is(option)
    return mapping[option] == 1
  end
  api.nvim_set_keymap('i', name, rhs, {
    expr = is('expr'),
    noremap = is('noremap'),
    silent = is('silent'),
    script = is('script'),
    callback = mapping.callback,
    replace_keycodes = is('replace_keycodes') or nil,
  })
  return name
end

-- Map the keys in a buffer.
function M.map(buffer, keys)
  for action, key in pairs(keys) do
    if key then
      local own = find(api.nvim_buf_get_keymap(buffer, 'i'), key)
      vim.keymap.set('i', key, function()
        if action == 'trigger' or require('codespec.engine').remainder() then
          return ('<Plug>(codespec-%s)'):format(action:gsub('_', '-'))
        end
        local mapping = own or find(api.nvim_get_keymap('i'), key)
        -- The key itself, which is not mapped again since the mapping begins with it.
        return mapping and proxy(action, mapping) or key
      end, { buffer = buffer, expr = true, remap = true, silent = true, desc = MARK .. DESCRIPTIONS[action] })
    end
  end
end

return M
