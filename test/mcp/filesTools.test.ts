import { writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { FileDesk } from '../../src/mcp/files/desk.ts'
import type { Call } from '../../src/mcp/tool.ts'
import { fileTools } from '../../src/mcp/tools/files.ts'
import { verifies } from '../requirements/verifies.ts'
import { stage } from './filesStage.ts'

/** Calls a tool as the server does: what it is given and what it answers must fit its schemas. */
async function call(files: FileDesk, name: string, given: Record<string, unknown>) {
  const tool = fileTools.find((one) => one.name === name)
  if (tool === undefined) return expect.unreachable(`There is no tool ${name}.`)
  const { text, structured } = await tool.run(tool.input.parse(given), { desk: { files }, client: 'ann' } as Call)
  expect(tool.output.strict().parse(structured)).toEqual(structured)
  return { text, structured }
}

describe('the file tools', () => {
  it('are four, and say which of them change something', () => {
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

  verifies('H-09', 'read files and list folders, with a line in the log for each', async () => {
    using place = stage()
    const { desk, at } = place
    writeFileSync(at('app/notes/today.md'), 'one\ntwo\nthree\n')
    const read = await call(desk, 'read_file', { path: 'notes/today.md' })
    expect(read).toMatchObject({
      text: 'one\ntwo\nthree\n',
      structured: { path: at('app/notes/today.md'), size: 14, total_lines: 3 },
    })
    expect((await call(desk, 'read_file', { path: 'notes/today.md', from: 2, lines: 1 })).text).toBe('two')
    expect((await call(desk, 'read_file', { path: 'notes/today.md', from: 9 })).text).toBe('')
    expect((await call(desk, 'list_directory', { path: 'notes' })).structured).toEqual({
      path: at('app/notes'),
      entries: [{ name: 'today.md', kind: 'file' }],
      total: 1,
    })
    expect((await call(desk, 'list_directory', { path: at('app') })).text).toBe(
      'dangling.txt (link)\nhello.txt\ninner (link)\nlink.txt (link)\nlinked (link)\nloop (link)\nnotes/',
    )
    expect(place.lines().map(({ user, operation, outcome }) => `${user} ${operation} ${outcome}`)).toEqual([
      ...Array.from({ length: 3 }, () => 'ann read allowed'),
      ...Array.from({ length: 2 }, () => 'ann list allowed'),
    ])
  })

  it('list a name on one line, whatever it holds, and to the letter for programs', async () => {
    using place = stage()
    const name = 'a\nb (link)\u009b1m'
    writeFileSync(place.at('app/notes', name), '')
    const { text, structured } = await call(place.desk, 'list_directory', { path: 'notes' })
    expect(text).toBe('a\\u{a}b (link)\\u{9b}1m\ntoday.md')
    expect(structured.entries).toEqual([
      { name, kind: 'file' },
      { name: 'today.md', kind: 'file' },
    ])
  })

  verifies('H-10', 'write files only where that is on, and make folders', async () => {
    using place = stage()
    const { desk, at } = place
    const made = await call(desk, 'create_directory', { path: 'new/deep' })
    expect(made).toEqual({
      text: `${at('app/new/deep')} was made.`,
      structured: { path: at('app/new/deep'), created: true },
    })
    expect((await call(desk, 'create_directory', { path: 'new' })).text).toBe(`${at('app/new')} was there already.`)
    expect((await call(desk, 'list_directory', { path: 'new/deep' })).text).toBe('The folder is empty.')
    expect((await call(desk, 'list_directory', {})).structured).toEqual({
      path: '',
      entries: [{ name: at('app'), kind: 'directory' }],
      total: 1,
    })
    expect((await call(desk, 'write_file', { path: 'new/a.txt', text: 'Hi' })).text).toBe(
      `Wrote 2 bytes to ${at('app/new/a.txt')}.`,
    )
    expect((await call(desk, 'read_file', { path: 'new/a.txt' })).text).toBe('Hi')
    using closed = stage({ write: false })
    await expect(call(closed.desk, 'write_file', { path: 'a.txt', text: 'Hi' })).rejects.toThrow('writing is off')
  })
})
