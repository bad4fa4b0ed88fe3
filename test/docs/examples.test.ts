import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { startProgram } from '../cli/command.ts'
import { startServer } from '../server/start.ts'
import { root } from '../shape/source.ts'
import { createTempPaths } from '../stores/tempPaths.ts'

const expectedReply = 'From what you told me: "My cat is called Miso."'

const createPath = createTempPaths()

describe('examples', () => {
  it('contain only files covered here', () =>
    expect(readdirSync(`${root}examples`).sort()).toEqual([
      'chat.ts',
      'durable.ts',
      'mcp',
      'openai-client.ts',
      'threadkeep.config.json',
      'upkeep.ts',
    ]))

  it('chat.ts answers from memory in one process', async () => {
    const { code, stdout, stderr } = await startProgram('examples/chat.ts', []).result
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toContain(`> What is my cat called?\n${expectedReply}\n(133 of 2000 tokens)\n`)
  })

  it('durable.ts remembers across runs and deletes permanently', async () => {
    const file = createPath()
    const searchResult = 'Found in acme:ann: My cat is called Miso.\n'
    const first = await startProgram('examples/durable.ts', [file]).result
    expect(first).toEqual({
      code: 0,
      stdout: `Messages from earlier runs: 0\n${searchResult}Deleted: m1 of acme:bob\n`,
      stderr: '',
    })
    const second = await startProgram('examples/durable.ts', [file]).result
    expect(second.stdout).toBe(`Messages from earlier runs: 1\n${searchResult}Deleted: nothing\n`)
    expect(readFileSync(file).includes('4711')).toBe(false)
  })

  it('upkeep.ts summarises old messages and extracts facts', async () => {
    const { code, stdout, stderr } = await startProgram('examples/upkeep.ts', []).result
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^Summary 1 covers 6 messages\. Context: \d+ of 3000 tokens\.$/m)
    expect(stdout).toContain('Preferences: {"theme":"light"}\nFacts: bees sleep\nSources: https://example.com/bees\n')
    expect(stdout).toContain('Stored: I prefer dark mode. My password is ⟨secret:…⟩.\n')
  })

  it('openai-client.ts answers from memory through the OpenAI client', async () => {
    await using server = await startServer()
    const { code, stdout, stderr } = await startProgram('examples/openai-client.ts', [], { THREADKEEP_URL: server.url })
      .result
    expect([code, stdout, stderr]).toEqual([0, `${expectedReply}\n`, ''])
    expect(await server.transcriptLines('demo:me')).toHaveLength(4)
  })
})
