-- Columns in the encoding of the protocol.

local M = {}

-- Byte of a line from a column in the encoding.
function M.byte(line, character, encoding)
  if encoding == 'utf-8' then
    return math.min(character, #line)
  end
  if vim.fn.has('nvim-0.11') == 1 then
    return vim.str_byteindex(line, encoding, character, false)
  end
  local found, column = pcall(vim.str_byteindex, line, character, encoding == 'utf-16')
  return found and column or #line
end

return M
