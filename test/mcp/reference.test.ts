import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { z } from 'zod'
import { MemoryError } from '../../src/domain/error.ts'
import { openGraph } from '../../src/graph/graph.ts'
import type { Call } from '../../src/mcp/tool.ts'
import { referenceTools } from '../../src/mcp/tools/reference.ts'
import { campaign, patience } from '../context/campaign.ts'
import { keyFile, type Opened } from '../graph/stage.ts'
import { verifies } from '../requirements/verifies.ts'
import { freshFiles } from '../stores/tempPaths.ts'
import { type Operation, operations } from './referenceOperations.ts'
import { type Answer, referenceServer } from './referenceServer.ts'

const fresh = freshFiles()
const runs = campaign ? 1_000 : 60

/** Asks a tool of ours as a server does: the arguments by its schema, a refusal by its words. */
async function ours(graph: Opened, workspace: string, { name, input }: Operation): Promise<Answer> {
  const tool = referenceTools.find((one) => one.name === name)
  if (tool === undefined) throw new Error(`There is no tool ${name}.`)
  const desk = { graph, changed: () => undefined } as unknown as Call['desk']
  const call: Call = {
    desk,
    workspace,
    client: 'test',
    signal: new AbortController().signal,
    progress: () => undefined,
    log: () => undefined,
  }
  try {
    const { text, structured } = await tool.run(tool.input.parse(input), call)
    // What crosses a pipe is JSON.
    return JSON.parse(
      JSON.stringify({
        content: [{ type: 'text', text }],
        structuredContent: tool.output.parse(structured),
        isError: false,
      }),
    ) as Answer
  } catch (error) {
    if (!(error instanceof MemoryError)) throw error
    return { content: [{ type: 'text', text: error.message }], structuredContent: undefined, isError: true }
  }
}

describe('the nine tools of the reference memory server', () => {
  let reference: Awaited<ReturnType<typeof referenceServer>>
  beforeAll(async () => {
    reference = await referenceServer(fresh('.jsonl'))
  })
  afterAll(() => reference[Symbol.asyncDispose]())

  verifies('S-04', 'have its names, titles, descriptions, annotations and schemas', async () => {
    const { tools } = await reference.client.listTools()
    const shown = tools.map(({ name, title, description, annotations, inputSchema, outputSchema }) => ({
      name,
      title,
      description,
      annotations,
      inputSchema,
      outputSchema,
    }))
    const offered = referenceTools.map(({ name, title, description, annotations, input, output }) => ({
      name,
      title,
      description,
      annotations,
      inputSchema: z.toJSONSchema(input, { target: 'draft-7', io: 'input' }),
      outputSchema: z.toJSONSchema(output, { target: 'draft-7', io: 'output' }),
    }))
    expect(JSON.parse(JSON.stringify(offered))).toEqual(shown)
  })

  const kinds = [
    ['in a file', () => openGraph(`sqlite:${fresh()}`)],
    ['in an encrypted file', () => openGraph(`sqlite:${fresh()}`, { storeKey: keyFile(fresh('.key')) })],
    ['in RAM', () => openGraph('ram:')],
  ] as const
  for (const [where, open] of kinds) {
    verifies(
      'S-04',
      `answer like it to the letter, ${where}, whatever they are asked`,
      async () => {
        const graph = await open()
        let cases = 0
        await fc.assert(
          fc.asyncProperty(operations, async (asked) => {
            const workspace = `w${cases++}`
            reference.forget()
            for (const operation of asked)
              expect(await ours(graph, workspace, operation)).toEqual(
                await reference.call(operation.name, operation.input),
              )
            const all = { name: 'read_graph', input: {} }
            expect(await ours(graph, workspace, all)).toEqual(await reference.call(all.name, all.input))
          }),
          { numRuns: runs },
        )
        await graph.close()
      },
      patience,
    )
  }
})
