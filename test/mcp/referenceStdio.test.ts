import { writeFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect } from 'vitest'
import { isCampaign, propertyTimeoutMs, seed } from '../context/campaign.ts'
import { verifies } from '../requirements/verifies.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { connectStdio } from './harness.ts'
import { operations } from './referenceOperations.ts'
import { referenceServer, toolCaller } from './referenceServer.ts'

const fresh = createTempPaths()

/** Removes the dialect: the newer protocol uses a newer one with the same meaning here. */
const withoutDialect = ({ $schema: _, ...schema }: Record<string, unknown>): object => schema

describe('threadkeep mcp as a replacement of the reference memory server', () => {
  verifies(
    'S-04',
    'has the same nine tools and gives the same answers to a long sequence of calls',
    async () => {
      await using reference = await referenceServer(fresh('.jsonl'))
      await using connected = await connectStdio('2025-11-25', ['--store', `sqlite:${fresh()}`])
      const ours = toolCaller(connected.client)
      const [theirTools, ourTools] = await Promise.all(
        [reference, ours].map(async ({ client }) => (await client.listTools()).tools),
      )
      for (const { name, title, description, annotations, inputSchema, outputSchema } of theirTools ?? []) {
        const own = ourTools?.find((tool) => tool.name === name)
        expect(own).toMatchObject({ name, title, description, annotations })
        expect(withoutDialect(own?.inputSchema ?? {})).toEqual(withoutDialect(inputSchema))
        expect(withoutDialect(own?.outputSchema ?? {})).toEqual(withoutDialect(outputSchema ?? {}))
      }
      for (const { name, input } of fc.sample(operations, { numRuns: isCampaign ? 25 : 10, seed }).flat())
        expect(await ours.call(name, input)).toEqual(await reference.call(name, input))
      const uri = 'memory://knowledge-graph'
      expect((await connected.client.readResource({ uri })).contents).toEqual(
        (await reference.client.readResource({ uri })).contents,
      )
    },
    propertyTimeoutMs,
  )

  verifies(
    ['S-04', 'H-11'],
    'stores all of 200 entities that a client creates concurrently',
    async () => {
      await using connected = await connectStdio('2025-11-25', ['--store', `sqlite:${fresh()}`])
      const { call } = toolCaller(connected.client)
      const names = Array.from({ length: 200 }, (_, at) => `e${at}`)
      const answers = await Promise.all(
        names.map((name) => call('create_entities', { entities: [{ name, entityType: 'thing', observations: [] }] })),
      )
      expect(answers.filter(({ isError }) => isError)).toEqual([])
      const { structuredContent } = await call('read_graph', {})
      expect((structuredContent as { entities: { name: string }[] }).entities.map(({ name }) => name)).toEqual(names)
    },
    propertyTimeoutMs,
  )

  verifies(
    'S-04',
    'imports the file of the reference server from MEMORY_FILE_PATH',
    async () => {
      const [file, path] = [fresh(), fresh('.jsonl')]
      const ann = { name: 'Ann', entityType: 'person', observations: ['likes tea'] }
      writeFileSync(path, JSON.stringify({ type: 'entity', ...ann }))
      for (const _ of ['first', 'second']) {
        await using connected = await connectStdio('2025-11-25', ['--store', `sqlite:${file}`], {
          MEMORY_FILE_PATH: path,
        })
        const { structuredContent } = await toolCaller(connected.client).call('read_graph', {})
        expect(structuredContent).toEqual({ entities: [ann], relations: [] })
      }
    },
    propertyTimeoutMs,
  )
})
