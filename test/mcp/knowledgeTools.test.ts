import { describe, expect } from 'vitest'
import { openMemory, profiles } from '../../src/index.ts'
import { knowledgeTools } from '../../src/mcp/tools/knowledge.ts'
import { messageTools } from '../../src/mcp/tools/messages.ts'
import type { ToolInvocation } from '../../src/mcp/tools/tool.ts'
import type { Memory } from '../../src/memory.ts'
import { verifies } from '../requirements/verifies.ts'

/** Calls a tool on a memory and checks its result against the output schema. */
async function callTool(memory: Memory, name: string, input: Readonly<Record<string, unknown>>) {
  const tool = [...knowledgeTools, ...messageTools].find((one) => one.name === name)
  if (tool === undefined) throw new Error(`There is no tool ${name}.`)
  const invocation = { context: { memory }, workspace: 'acme' } as unknown as ToolInvocation
  const { text, structured } = await tool.run(tool.input.parse(input), invocation)
  return { text, structured: tool.output.strict().parse(structured) as Record<string, unknown> }
}

const scopes = ['session', 'scope', 'person'] as const
const language = { key: 'language', value: 'German', category: 'user_preference', person: 'ann' }

describe('remember', () => {
  verifies('S-09', 'with a person › writes the memory of that person, which their sessions are shown', async () => {
    await using memory = await openMemory({ profile: { ...profiles.agent, name: 'mine', scopes }, upkeep: false })
    const { text, structured } = await callTool(memory, 'remember', language)
    expect([text, structured]).toEqual(['Stored language as k1.', { id: 'k1', confidence: 0.5, pending: false }])
    await memory.append('acme:1', [{ role: 'user', content: 'Hello.' }])
    const contextOf = async (input: object) =>
      (await callTool(memory, 'get_context', { sessionId: '1', ...input })).text
    expect(await contextOf({ person: 'ann' })).toContain('user_preference, language: German')
    expect(await contextOf({ person: 'bob' })).not.toContain('German')
    expect(await contextOf({})).not.toContain('German')
  })

  verifies(['S-09', 'X-09'], 'under a profile that asks › waits for approval by the user', async () => {
    await using memory = await openMemory({ profile: 'thread' })
    const { text, structured } = await callTool(memory, 'remember', language)
    expect(structured).toEqual({ id: 'k1', confidence: 0.5, pending: true })
    expect(text).toBe(
      'Stored language as k1. It is not shown until the user runs: threadkeep knowledge approve acme k1 --person ann',
    )
    expect(await memory.upkeep.knowledge('acme')).toEqual([])
    expect(await memory.upkeep.approve('acme', 'k1', { person: 'ann' })).not.toHaveProperty('pending')
    await callTool(memory, 'remember', { key: 'hours', value: ['nine', 'five'] })
    expect(await memory.upkeep.knowledge('acme')).toMatchObject([{ category: 'domain', value: ['nine', 'five'] }])
  })
})
