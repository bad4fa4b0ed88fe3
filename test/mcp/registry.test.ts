import { expect } from 'vitest'
import { registeredTools } from '../../src/mcp/tools/registry.ts'
import { verifies } from '../requirements/verifies.ts'

/** Paths of the faults that a tool reports for arguments. */
async function findFaults(name: string, args: unknown): Promise<readonly string[] | undefined> {
  const tool = registeredTools.find((one) => one.name === name)
  const { issues } = (await tool?.schemas.input['~standard'].validate(args)) ?? {}
  return issues?.map(({ path }) => (path ?? []).join('.'))
}

const relation = { from: 'a', to: 'b', relationType: 'knows' }

verifies('R-03', 'arguments of thousands of elements › are checked up to the first fault', async () => {
  const relations = [relation, ...Array.from({ length: 10_000 }, () => ({}))]
  expect(await findFaults('create_relations', { relations })).toEqual(['relations.1.from'])
  const contents = ['fine', ...Array.from({ length: 10_000 }, () => 1)]
  expect(await findFaults('add_observations', { observations: [{ entityName: 'a', contents }] })).toEqual([
    'observations.0.contents.1',
  ])
  expect(await findFaults('create_relations', { relations: relations.fill(relation) })).toBeUndefined()
})

verifies('R-03', 'short arguments › are checked for up to 20 faults', async () => {
  expect(await findFaults('create_relations', { relations: [{}, relation] })).toEqual([
    'relations.0.from',
    'relations.0.to',
    'relations.0.relationType',
  ])
  expect(await findFaults('create_relations', { relations: Array.from({ length: 30 }, () => 1) })).toHaveLength(20)
})
