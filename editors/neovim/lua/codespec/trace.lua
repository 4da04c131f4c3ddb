-- The last completion, token by token: who proposed what, and what the target made of it.

local tell = require('codespec.tell')

local M = {}

local api = vim.api

local NAMESPACE = api.nvim_create_namespace('codespec.trace')

-- Where a token came from: its colour, and what that means.
local SOURCES = {
  { 'target', 'Normal', "the target's own" },
  { 'model', 'CodespecModel', 'drafted by the model, accepted' },
  { 'ngram', 'CodespecNgram', 'drafted by n-grams, accepted' },
  { 'forced', 'CodespecForced', 'forced by the grammar' },
  { 'rejected', 'CodespecRejected', 'drafted, rejected' },
}

local GROUPS = {}
for _, source in ipairs(SOURCES) do
  GROUPS[source[1]] = source[2]
end

local function define_highlights()
  for name, link in pairs({ Model = 'String', Ngram = 'Type', Forced = 'Special', Rejected = 'Error' }) do
    api.nvim_set_hl(0, 'Codespec' .. name, { link = link, default = true })
  end
end

-- Text that grows by coloured pieces.
local Page = {}
Page.__index = Page

function Page:write(text, group)
  for index, part in ipairs(vim.split(text, '\n', { plain = true })) do
    if index > 1 then
      table.insert(self.lines, '')
    end
    local row = #self.lines
    local start = #self.lines[row]
    self.lines[row] = self.lines[row] .. part
    if group and part ~= '' then
      table.insert(self.marks, { row - 1, start, start + #part, group })
    end
  end
end

local function text_of(tokens)
  return table.concat(tokens, '')
end

local function write_text(page, passes)
  for _, pass in ipairs(passes) do
    for index, token in ipairs(pass.tokens) do
      -- The rejected ones stood where the target's own stands now.
      if pass.sources[index] == 'target' and #pass.rejected > 0 and index == #pass.tokens then
        page:write('⟦' .. text_of(pass.rejected):gsub('\n', '⏎') .. '⟧', GROUPS.rejected)
      end
      page:write(token, GROUPS[pass.sources[index]])
    end
  end
end

local function write_passes(page, passes)
  page:write('\n\npass      ms  proposed  accepted  tokens')
  for number, pass in ipairs(passes) do
    local accepted = 0
    for _, source in ipairs(pass.sources) do
      accepted = accepted + (source ~= 'target' and 1 or 0)
    end
    local text = vim.inspect(text_of(pass.tokens))
    page:write(('\n%4d %7.1f %9d %9d  %s'):format(number, pass.ms, accepted + #pass.rejected, accepted, text))
  end
end

-- Show what `codespec.trace` answers.
function M.show(trace)
  if type(trace) ~= 'table' then
    tell.notify('there is no completion yet')
    return
  end
  define_highlights()
  local page = setmetatable({ lines = { '' }, marks = {} }, Page)
  local drafted = trace.drafted > 0 and ('%d of %d drafted tokens accepted'):format(trace.accepted, trace.drafted)
  page:write(('%d tokens in %d passes of the target; '):format(trace.tokens, trace.target_calls))
  page:write((drafted or 'nothing was drafted') .. '\n')
  if trace.nothing and trace.nothing ~= '' then
    page:write('Nothing of it was shown. ' .. trace.nothing .. '.\n', 'WarningMsg')
  end
  for _, source in ipairs(SOURCES) do
    page:write(source[3], source[2])
    page:write('   ')
  end
  page:write('\n\n')
  write_text(page, trace.passes)
  write_passes(page, trace.passes)
  local buffer = tell.show('trace', page.lines)
  api.nvim_buf_clear_namespace(buffer, NAMESPACE, 0, -1)
  for _, mark in ipairs(page.marks) do
    local row, start, stop, group = unpack(mark)
    api.nvim_buf_set_extmark(buffer, NAMESPACE, row, start, { end_col = stop, hl_group = group })
  end
end

return M
