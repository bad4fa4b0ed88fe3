import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { z } from 'zod'
import { MemoryError } from '../../src/domain/error.ts'
import { openGraph } from '../../src/graph/graph.ts'
import { referenceTools } from '../../src/mcp/tools/reference.ts'
import type { ToolContext, ToolInvocation } from '../../src/mcp/tools/tool.ts'
import { isCampaign, propertyTimeoutMs } from '../context/campaign.ts'
import { type GraphWithNodes, writeKeyFile } from '../graph/fixtures.ts'
import { verifies } from '../requirements/verifies.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { getPostgres } from '../support/postgres.ts'
import { type Operation, operations } from './referenceOperations.ts'
import { referenceServer, type ToolAnswer } from './referenceServer.ts'

const fresh = createTempPaths()
const runs = isCampaign ? 1_000 : 20

/** Calls our tool as the server does: arguments are parsed with the schema, errors become messages. */
async function callOwnTool(graph: GraphWithNodes, workspace: string, { name, input }: Operation): Promise<ToolAnswer> {
  const tool = referenceTools.find((one) => one.name === name)
  if (tool === undefined) throw new Error(`There is no tool ${name}.`)
  const context = { graph, notifyChanged: () => undefined } as unknown as ToolContext
  const invocation: ToolInvocation = {
    context,
    workspace,
    client: 'test',
    signal: new AbortController().signal,
    progress: () => undefined,
    log: () => undefined,
  }
  try {
    const { text, structured } = await tool.run(tool.input.parse(input), invocation)
    // Serialized like over a transport.
    return JSON.parse(
      JSON.stringify({
        content: [{ type: 'text', text }],
        structuredContent: tool.output.parse(structured),
        isError: false,
      }),
    ) as ToolAnswer
  } catch (error) {
    if (!(error instanceof MemoryError)) throw error
    return { content: [{ type: 'text', text: error.message }], structuredContent: undefined, isError: true }
  }
}

describe('reference tools', () => {
  let reference: Awaited<ReturnType<typeof referenceServer>>
  beforeAll(async () => {
    reference = await referenceServer(fresh('.jsonl'))
  })
  afterAll(() => reference[Symbol.asyncDispose]())

  verifies(
    'S-04',
    'have the names, titles, descriptions, annotations and schemas of the reference server',
    async () => {
      const { tools } = await reference.client.listTools()
      const expected = tools.map(({ name, title, description, annotations, inputSchema, outputSchema }) => ({
        name,
        title,
        description,
        annotations,
        inputSchema,
        outputSchema,
      }))
      const actual = referenceTools.map(({ name, title, description, annotations, input, output }) => ({
        name,
        title,
        description,
        annotations,
        inputSchema: z.toJSONSchema(input, { target: 'draft-7', io: 'input' }),
        outputSchema: z.toJSONSchema(output, { target: 'draft-7', io: 'output' }),
      }))
      expect(JSON.parse(JSON.stringify(actual))).toEqual(expected)
    },
  )

  const backends = [
    ['in a file', () => openGraph(`sqlite:${fresh()}`)],
    ['in an encrypted file', () => openGraph(`sqlite:${fresh()}`, { storeKey: writeKeyFile(fresh('.key')) })],
    ['in RAM', () => openGraph('ram:')],
    ['in PostgreSQL', async () => openGraph(await (await getPostgres()).createDatabase())],
  ] as const
  for (const [where, open] of backends) {
    verifies(
      'S-04',
      `${where} give the same answers as the reference server for random calls`,
      async () => {
        const graph = await open()
        let cases = 0
        await fc.assert(
          fc.asyncProperty(operations, async (sequence) => {
            const workspace = `w${cases++}`
            reference.reset()
            for (const operation of sequence)
              expect(await callOwnTool(graph, workspace, operation)).toEqual(
                await reference.call(operation.name, operation.input),
              )
            const all = { name: 'read_graph', input: {} }
            expect(await callOwnTool(graph, workspace, all)).toEqual(await reference.call(all.name, all.input))
          }),
          { numRuns: runs },
        )
        await graph.close()
      },
      propertyTimeoutMs,
    )
  }
})
