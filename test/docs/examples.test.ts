import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { start } from '../cli/command.ts'
import { startServer } from '../server/start.ts'
import { root } from '../shape/source.ts'
import { freshFiles } from '../stores/tempPaths.ts'

const quote = 'From what you told me: "My cat is called Miso."'

const fresh = freshFiles()

describe('the examples', () => {
  it('are those that are run here', () =>
    expect(readdirSync(`${root}examples`).sort()).toEqual([
      'chat.ts',
      'durable.ts',
      'mcp',
      'openai-client.ts',
      'threadkeep.config.json',
      'upkeep.ts',
    ]))

  it('chat.ts talks with memory in one process', async () => {
    const { code, stdout, stderr } = await start('examples/chat.ts', []).ended
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toContain(`> What is my cat called?\n${quote}\n(133 of 2000 tokens)\n`)
  })

  it('durable.ts remembers across runs and forgets for good', async () => {
    const file = fresh()
    const found = 'Found in acme:ann: My cat is called Miso.\n'
    const first = await start('examples/durable.ts', [file]).ended
    expect(first).toEqual({
      code: 0,
      stdout: `Known from before: 0 messages.\n${found}Forgotten for good: m1 of acme:bob\n`,
      stderr: '',
    })
    const second = await start('examples/durable.ts', [file]).ended
    expect(second.stdout).toBe(`Known from before: 1 messages.\n${found}Forgotten for good: nothing was left\n`)
    expect(readFileSync(file).includes('4711')).toBe(false)
  })

  it('upkeep.ts makes old turns small and keeps what matters', async () => {
    const { code, stdout, stderr } = await start('examples/upkeep.ts', []).ended
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^Summary 1 stands for 7 messages; \d+ of 3000 tokens are shown\.$/m)
    expect(stdout).toContain('Preferences: {"theme":"light"}\nFacts: bees sleep\nSources: https://example.com/bees\n')
    expect(stdout).toContain('Kept: I prefer dark mode. My password is ⟨secret:…⟩.\n')
  })

  it("openai-client.ts talks with memory through OpenAI's client", async () => {
    await using server = await startServer()
    const { code, stdout, stderr } = await start('examples/openai-client.ts', [], { THREADKEEP_URL: server.url }).ended
    expect([code, stdout, stderr]).toEqual([0, `${quote}\n`, ''])
    expect(await server.said('demo:me')).toHaveLength(4)
  })
})
