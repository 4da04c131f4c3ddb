-- A completion that is offered at a place: what of it is not typed yet, and its parts.

local columns = require('codespec.columns')

local M = {}

local api = vim.api

-- What is offered.
--   buffer, row   where it is, row from 1
--   start         byte of the line where it begins; it repeats what is typed from there to the cursor
--   after         the line behind the cursor
--   items         alternatives: text, which takes the place of the line from `start` to the cursor; offered, what of
--                 that was not typed when it came; command, to be run when it is accepted
--   index         of the alternative in question
--   chosen        whether the user chose among them

-- The part of a line that an item replaces must end at the cursor, since a completion inserts and takes nothing away.
local function read(item, row, column, line, encoding)
  local start = column
  if type(item.insertText) ~= 'string' then
    return nil
  end
  if type(item.range) == 'table' then
    local from, to = item.range.start, item.range['end']
    if from.line ~= row - 1 or to.line ~= row - 1 or columns.byte(line, to.character, encoding) ~= column then
      return nil
    end
    start = columns.byte(line, from.character, encoding)
  end
  local typed = line:sub(start + 1, column)
  if #item.insertText <= #typed or not vim.startswith(item.insertText, typed) then
    return nil
  end
  return start, { text = item.insertText, offered = item.insertText:sub(#typed + 1), command = item.command }
end

-- A suggestion from an answer for the cursor's place in the current buffer; nil where nothing of it can be shown.
function M.from(items, encoding)
  local row, column = unpack(api.nvim_win_get_cursor(0))
  local line = api.nvim_get_current_line()
  local suggestion
  for _, item in ipairs(items) do
    local start, alternative = read(item, row, column, line, encoding)
    if start and (not suggestion or suggestion.start == start) then
      suggestion = suggestion
        or { buffer = api.nvim_get_current_buf(), row = row, start = start, after = line:sub(column + 1), items = {} }
      table.insert(suggestion.items, alternative)
    end
  end
  if suggestion then
    suggestion.index = 1
  end
  return suggestion
end

-- What of a suggestion is not typed yet; nil where it no longer fits what is typed.
function M.remainder(suggestion)
  if not suggestion or suggestion.buffer ~= api.nvim_get_current_buf() then
    return nil
  end
  local row, column = unpack(api.nvim_win_get_cursor(0))
  local line = api.nvim_get_current_line()
  if row ~= suggestion.row or column < suggestion.start or line:sub(column + 1) ~= suggestion.after then
    return nil
  end
  local typed = line:sub(suggestion.start + 1, column)
  local text = suggestion.items[suggestion.index].text
  if suggestion.start == 0 and not vim.startswith(text, typed) and not text:find('\n') then
    -- Typing a bracket that closes may have indented the line anew.
    typed, text = typed:gsub('^%s+', ''), text:gsub('^%s+', '')
    if typed == '' then
      return nil
    end
  end
  if #typed < #text and vim.startswith(text, typed) then
    return text:sub(#typed + 1)
  end
end

-- The beginning of a text that is accepted at once: `all` of it, a `word` with the space before it, or a `line`.
function M.part(text, kind)
  if kind == 'word' then
    local word = vim.fn.matchstr(text, [[^\_s*\%(\k\+\|\%(\k\@!\S\)\+\)]])
    return word ~= '' and word or text
  elseif kind == 'line' then
    return text:match('^\n?[^\n]*')
  end
  return text
end

-- After a part of it was inserted that ends in another line: the suggestion goes on there with `rest`.
function M.advance(suggestion, lines, rest)
  local item = suggestion.items[suggestion.index]
  suggestion.row = suggestion.row + #lines - 1
  suggestion.start = 0
  suggestion.items = { { text = lines[#lines] .. rest, offered = item.offered, command = item.command } }
  suggestion.index = 1
end

return M
