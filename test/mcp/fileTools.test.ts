import { writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { FileAccess } from '../../src/mcp/files/fileAccess.ts'
import { fileTools } from '../../src/mcp/tools/files.ts'
import type { ToolInvocation } from '../../src/mcp/tools/tool.ts'
import { verifies } from '../requirements/verifies.ts'
import { createFilesFixture } from './filesFixture.ts'

/** Calls a tool as the server does, and checks input and output against its schemas. */
async function call(files: FileAccess, name: string, input: Record<string, unknown>) {
  const tool = fileTools.find((one) => one.name === name)
  if (tool === undefined) return expect.unreachable(`There is no tool ${name}.`)
  const invocation = { context: { files }, client: 'ann' } as ToolInvocation
  const { text, structured } = await tool.run(tool.input.parse(input), invocation)
  expect(tool.output.strict().parse(structured)).toEqual(structured)
  return { text, structured }
}

describe('file tools', () => {
  it('have hints that say which of them change files', () => {
    const hints = fileTools.map(({ name, annotations }) => [
      name,
      annotations.readOnlyHint,
      annotations.destructiveHint,
    ])
    expect(hints).toEqual([
      ['read_file', true, false],
      ['list_directory', true, false],
      ['write_file', false, true],
      ['create_directory', false, false],
    ])
  })

  verifies('H-09', 'read files and list folders, with an audit line for each', async () => {
    using fixture = createFilesFixture()
    const { files, at } = fixture
    writeFileSync(at('app/notes/today.md'), 'one\ntwo\nthree\n')
    const read = await call(files, 'read_file', { path: 'notes/today.md' })
    expect(read).toMatchObject({
      text: 'one\ntwo\nthree\n',
      structured: { path: at('app/notes/today.md'), size: 14, total_lines: 3 },
    })
    expect((await call(files, 'read_file', { path: 'notes/today.md', from: 2, lines: 1 })).text).toBe('two')
    expect((await call(files, 'read_file', { path: 'notes/today.md', from: 9 })).text).toBe('')
    expect((await call(files, 'list_directory', { path: 'notes' })).structured).toEqual({
      path: at('app/notes'),
      entries: [{ name: 'today.md', kind: 'file' }],
      total: 1,
    })
    expect((await call(files, 'list_directory', { path: at('app') })).text).toBe(
      'dangling.txt (link)\nhello.txt\ninner (link)\nlink.txt (link)\nlinked (link)\nloop (link)\nnotes/',
    )
    expect(fixture.auditLines().map(({ user, operation, outcome }) => `${user} ${operation} ${outcome}`)).toEqual([
      ...Array.from({ length: 3 }, () => 'ann read allowed'),
      ...Array.from({ length: 2 }, () => 'ann list allowed'),
    ])
  })

  it('escape names in the text and keep them unescaped in the structured result', async () => {
    using fixture = createFilesFixture()
    const name = 'a\nb (link)\u009b1m'
    writeFileSync(fixture.at('app/notes', name), '')
    const { text, structured } = await call(fixture.files, 'list_directory', { path: 'notes' })
    expect(text).toBe('a\\u{a}b (link)\\u{9b}1m\ntoday.md')
    expect(structured.entries).toEqual([
      { name, kind: 'file' },
      { name: 'today.md', kind: 'file' },
    ])
  })

  verifies('H-10', 'write files only if writing is enabled, and create folders', async () => {
    using fixture = createFilesFixture()
    const { files, at } = fixture
    const created = await call(files, 'create_directory', { path: 'new/deep' })
    expect(created).toEqual({
      text: `Created ${at('app/new/deep')}.`,
      structured: { path: at('app/new/deep'), created: true },
    })
    expect((await call(files, 'create_directory', { path: 'new' })).text).toBe(`${at('app/new')} exists already.`)
    expect((await call(files, 'list_directory', { path: 'new/deep' })).text).toBe('The folder is empty.')
    expect((await call(files, 'list_directory', {})).structured).toEqual({
      path: '',
      entries: [{ name: at('app'), kind: 'directory' }],
      total: 1,
    })
    expect((await call(files, 'write_file', { path: 'new/a.txt', text: 'Hi' })).text).toBe(
      `Wrote 2 bytes to ${at('app/new/a.txt')}.`,
    )
    expect((await call(files, 'read_file', { path: 'new/a.txt' })).text).toBe('Hi')
    using readOnly = createFilesFixture({ write: false })
    await expect(call(readOnly.files, 'write_file', { path: 'a.txt', text: 'Hi' })).rejects.toThrow(
      'writing is disabled',
    )
  })
})
