import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { registeredTools } from '../../src/mcp/tools/registry.ts'
import { compileCacheEnv } from '../cli/command.ts'
import { verifies } from '../requirements/verifies.ts'
import { root } from '../shape/source.ts'
import { startTestServer, type TestServer } from './harness.ts'

const run = promisify(execFile)
const folder = mkdtempSync(join(tmpdir(), 'threadkeep-inspector-'))
let server: TestServer
beforeAll(async () => {
  server = await startTestServer()
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

/** Runs the inspector. It fails if the server does not answer, or with --strict if a schema is invalid. */
async function runInspector(
  target: readonly string[],
  ...args: readonly string[]
): Promise<{ readonly answer: unknown; readonly stderr: string }> {
  const program = fileURLToPath(import.meta.resolve('@modelcontextprotocol/inspector/clients/launcher/build/index.js'))
  const env = { PATH: process.env.PATH, HOME: folder, ...compileCacheEnv }
  const { stdout, stderr } = await run(process.execPath, [program, '--cli', ...target, ...args], {
    cwd: folder,
    env,
    maxBuffer: 2 ** 26,
  })
  return { answer: JSON.parse(stdout), stderr }
}

const targets = [
  ['stdio', () => [process.execPath, `${root}src/cli/main.ts`, 'mcp', '--store', 'ram:']],
  ['HTTP', () => [`${server.url}/mcp`, '--transport', 'http']],
] as const

describe('MCP inspector', () => {
  for (const [name, target] of targets) {
    for (const era of ['modern', 'legacy']) {
      const inspect = (...args: readonly string[]) => runInspector(target(), '--protocol-era', era, ...args)

      verifies('S-04', `in strict mode accepts all tools: ${name}, ${era} protocol`, async () => {
        const { answer, stderr } = await inspect('--method', 'tools/list', '--strict')
        expect((answer as { tools: { name: string }[] }).tools.map((tool) => tool.name)).toEqual(
          registeredTools.map((tool) => tool.name),
        )
        expect(stderr).not.toMatch(/error|warning/i)
      })

      if (era === 'legacy') continue
      verifies(
        'S-04',
        `calls a tool${name === 'HTTP' ? ', and reads resources and prompts' : ''}: ${name}, ${era} protocol`,
        async () => {
          const { answer: read } = await inspect('--method', 'tools/call', '--tool-name', 'read_graph')
          expect(read).toMatchObject({ structuredContent: { entities: [], relations: [] } })
          // Each call starts the inspector, and the server if it is a process.
          if (name === 'stdio') return
          const { answer: resources } = await inspect('--method', 'resources/list')
          expect(resources).toMatchObject({
            resources: [{ uri: 'memory://knowledge-graph' }, { uri: 'threadkeep://sessions/default' }],
          })
          const { answer: templates } = await inspect('--method', 'resources/templates/list')
          expect((templates as { resourceTemplates: unknown[] }).resourceTemplates).toHaveLength(4)
          const { answer: prompts } = await inspect('--method', 'prompts/list')
          expect(prompts).toMatchObject({ prompts: [{ name: 'continue-session' }, { name: 'handoff-summary' }] })
        },
      )
    }
  }
})
