// Exact search by meaning among 100,000 vectors of 384 numbers.
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Hit } from '../src/domain/ports.ts'
import { Matrix } from '../src/search/matrix.ts'
import { sqliteStore } from '../src/stores/sqlite.ts'
import { fill, scope, seeded, sentences } from './corpus.ts'
import { peer } from './peer.ts'
import { type Contenders, inTurn, report, type Target, timed } from './rounds.ts'

const dimensions = 384
const model = 'bench'
const each = 100

type SqliteVec = { load(database: DatabaseSync): void }
type Search = (query: Float32Array) => readonly number[]

function unit(values: Float32Array): Float32Array {
  const length = Math.hypot(...values)
  return values.map((value) => value / length)
}

/** A vector of length 1 in a random direction. */
const direction = (random: () => number): Float32Array =>
  unit(Float32Array.from({ length: dimensions }, () => random() + random() + random() - 1.5))

/** Something near a vector, as a question is near its answer. */
function near(values: Float32Array, random: () => number): Float32Array {
  const other = direction(random)
  return unit(values.map((value, at) => value + (other[at] as number)))
}

async function filledStore(path: string, all: readonly Float32Array[]): Promise<ReturnType<typeof sqliteStore>> {
  const store = sqliteStore(path)
  await fill(store, all.length / each, each, sentences(5_000))
  for (let from = 0; from < all.length; from += 1_000) {
    const some = all.slice(from, from + 1_000)
    const { entries } = await store.unembedded(model, `m${from}`, 1_000)
    await store.embed(
      model,
      entries.map((entry, at) => ({ ...entry, values: some[at] as Float32Array })),
    )
  }
  return store
}

/** The rows nearest to a query by sqlite-vec; undefined where it is not installed. */
async function sqliteVec(path: string, all: readonly Float32Array[]): Promise<Search | undefined> {
  const extension = await peer<SqliteVec>('sqlite-vec')
  if (extension === undefined) return undefined
  const database = new DatabaseSync(path, { allowExtension: true })
  extension.load(database)
  // of vectors of length 1 the nearest are those with the highest cosine
  database.exec(`PRAGMA journal_mode = WAL; CREATE VIRTUAL TABLE point USING vec0 (data float[${dimensions}]); BEGIN`)
  const insert = database.prepare('INSERT INTO point (rowid, data) VALUES (?, ?)')
  for (const [row, values] of all.entries()) insert.run(BigInt(row), bytesOf(values))
  database.exec('COMMIT')
  const statement = database.prepare('SELECT rowid FROM point WHERE data MATCH ? AND k = 10 ORDER BY distance')
  return (query) => statement.all(bytesOf(query)).map(({ rowid }) => Number(rowid))
}

const bytesOf = (values: Float32Array): Uint8Array =>
  new Uint8Array(values.buffer, values.byteOffset, values.byteLength)
const rowOf = ({ key, entry }: Hit): number => Number(key.id.slice(1)) * each + Number(entry.id.slice(1)) - 1

export async function vectors(folder: string, quick: boolean): Promise<void> {
  const [count, rounds] = quick ? [10_000, 20] : [100_000, 60]
  const random = seeded(11)
  const all = Array.from({ length: count }, () => direction(random))
  const store = await filledStore(join(folder, 'ours.db'), all)
  const theirs = await sqliteVec(join(folder, 'vec.db'), all)
  const matrix = new Matrix(dimensions)
  for (const values of all) matrix.add(values)

  const queries = Array.from({ length: rounds + 5 }, () =>
    near(all[Math.floor(random() * count)] as Float32Array, random),
  )
  const found = (values: Float32Array): Promise<readonly Hit[]> =>
    store.search({ scope }, { vector: { model, values }, limit: 10 })
  const queryOf = (round: number): Float32Array => queries[round] as Float32Array
  console.log(
    `\nthe first search by meaning, everything is read: ${Math.round(await timed(() => found(queryOf(0))))} ms`,
  )
  const contenders: Contenders = {
    'store.search': (round) => timed(() => found(queryOf(round))),
    'bare scan': (round) => timed(() => matrix.scores(queryOf(round))),
    ...(theirs === undefined ? {} : { 'sqlite-vec': (round) => timed(() => theirs(queryOf(round))) }),
  }
  const targets: Target[] = [{ ours: 'store.search', peer: 'bare scan', atMost: 1.5 }]
  if (theirs !== undefined) targets.push({ ours: 'store.search', peer: 'sqlite-vec', atMost: 0.2 })
  report(`the 10 nearest of ${count} vectors, ms, ${rounds} queries`, await inTurn(contenders, rounds, 5), targets)
  if (theirs !== undefined) await compare(queries, found, theirs)
  await store.close()
}

async function compare(
  queries: readonly Float32Array[],
  found: (query: Float32Array) => Promise<readonly Hit[]>,
  theirs: Search,
): Promise<void> {
  let same = 0
  for (const query of queries) if ((await found(query)).map(rowOf).join() === theirs(query).join()) same++
  console.log(`  the same ten in the same order as sqlite-vec: ${same} of ${queries.length} queries`)
}
