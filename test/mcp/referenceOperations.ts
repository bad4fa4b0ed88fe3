import fc from 'fast-check'

/** Call of one of the nine tools. */
export type Operation = { readonly name: string; readonly input: Readonly<Record<string, unknown>> }

/** Few names, so that they collide, with unusual case mappings, lone surrogates and query syntax among them. */
const words = [
  'a',
  'A',
  'ab',
  'ABC',
  'straße',
  'STRASSE',
  'İstanbul',
  'ΣΑΣ',
  'ς',
  '😀',
  '\ud83d',
  '\0',
  'a\0b',
  '',
  '"a" OR b*',
  "it's 100%",
  'line\nbreak',
  'ﬁne',
  '__proto__',
]
const text = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom(...words) },
  fc.string({ maxLength: 6, unit: 'grapheme' }),
  fc.string({ maxLength: 12, unit: 'binary' }),
)
const name = fc.constantFrom(...words.slice(0, 10))
const texts = fc.array(text, { maxLength: 4 })
const entity = fc.record({ name, entityType: text, observations: texts })
const relation = fc.record({ from: name, to: name, relationType: fc.constantFrom('knows', 'KNOWS', '') })
const some = <T>(one: fc.Arbitrary<T>): fc.Arbitrary<T[]> => fc.array(one, { maxLength: 4 })

const tools: Readonly<Record<string, fc.Arbitrary<Operation['input']>>> = {
  create_entities: fc.record({ entities: some(entity) }),
  create_relations: fc.record({ relations: some(relation) }),
  add_observations: fc.record({ observations: some(fc.record({ entityName: name, contents: texts })) }),
  delete_entities: fc.record({ entityNames: fc.array(name, { maxLength: 2 }) }),
  delete_observations: fc.record({ deletions: some(fc.record({ entityName: name, observations: texts })) }),
  delete_relations: fc.record({ relations: some(relation) }),
  read_graph: fc.constant({}),
  search_nodes: fc.record({
    query: fc.oneof(
      text,
      fc.tuple(text, text).map(([one, other]) => one + other),
    ),
  }),
  open_nodes: fc.record({ names: some(name) }),
}

const weights: Readonly<Record<string, number>> = {
  create_entities: 5,
  create_relations: 3,
  add_observations: 4,
  search_nodes: 5,
  read_graph: 2,
}

/** Sequences of tool calls. */
export const operations: fc.Arbitrary<readonly Operation[]> = fc.array(
  fc.oneof(
    ...Object.entries(tools).map(([tool, input]) => ({
      weight: weights[tool] ?? 1,
      arbitrary: input.map((input) => ({ name: tool, input })),
    })),
  ),
  { minLength: 3, maxLength: 14 },
)
