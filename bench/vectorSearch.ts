// Exact vector search among 100,000 vectors of 384 dimensions.
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { IndexHit } from '../src/domain/ports.ts'
import { Matrix } from '../src/search/matrix.ts'
import { sqliteStore } from '../src/stores/sqlite.ts'
import { createRandom, createSentences, fillStore, scope } from './corpus.ts'
import { type Contenders, importPeer, measureInterleaved, measureMs, report, type Target } from './measure.ts'

const dimensions = 384
const model = 'bench'
const messagesPerSession = 100

type SqliteVec = { load(database: DatabaseSync): void }
type Search = (query: Float32Array) => readonly number[]

function normalise(values: Float32Array): Float32Array {
  const length = Math.hypot(...values)
  return values.map((value) => value / length)
}

/** Creates a vector of length 1 in a random direction. */
const createDirection = (random: () => number): Float32Array =>
  normalise(Float32Array.from({ length: dimensions }, () => random() + random() + random() - 1.5))

/** Creates a vector near another one, as a query is near its answer. */
function createNeighbour(values: Float32Array, random: () => number): Float32Array {
  const other = createDirection(random)
  return normalise(values.map((value, at) => value + (other[at] as number)))
}

async function createStore(path: string, all: readonly Float32Array[]): Promise<ReturnType<typeof sqliteStore>> {
  const store = sqliteStore(path)
  await fillStore(store, all.length / messagesPerSession, messagesPerSession, createSentences(5_000))
  for (let from = 0; from < all.length; from += 1_000) {
    const batch = all.slice(from, from + 1_000)
    const { entries } = await store.listUnembedded(model, `m${from}`, 1_000)
    await store.storeVectors(
      model,
      entries.map((entry, index) => ({ ...entry, values: batch[index] as Float32Array })),
    )
  }
  return store
}

/** Creates a search for the nearest rows with sqlite-vec. Undefined if it is not installed. */
async function createSqliteVecSearch(path: string, all: readonly Float32Array[]): Promise<Search | undefined> {
  const extension = await importPeer<SqliteVec>('sqlite-vec')
  if (extension === undefined) return undefined
  const database = new DatabaseSync(path, { allowExtension: true })
  extension.load(database)
  // For vectors of length 1, the nearest have the highest cosine similarity.
  database.exec(`PRAGMA journal_mode = WAL; CREATE VIRTUAL TABLE point USING vec0 (data float[${dimensions}]); BEGIN`)
  const insert = database.prepare('INSERT INTO point (rowid, data) VALUES (?, ?)')
  for (const [row, values] of all.entries()) insert.run(BigInt(row), toBytes(values))
  database.exec('COMMIT')
  const statement = database.prepare('SELECT rowid FROM point WHERE data MATCH ? AND k = 10 ORDER BY distance')
  return (query) => statement.all(toBytes(query)).map(({ rowid }) => Number(rowid))
}

const toBytes = (values: Float32Array): Uint8Array =>
  new Uint8Array(values.buffer, values.byteOffset, values.byteLength)
const toRow = ({ key, entry }: IndexHit): number =>
  Number(key.id.slice(1)) * messagesPerSession + Number(entry.id.slice(1)) - 1

export async function benchVectorSearch(folder: string, quick: boolean): Promise<void> {
  const [count, rounds] = quick ? [10_000, 20] : [100_000, 60]
  const random = createRandom(11)
  const all = Array.from({ length: count }, () => createDirection(random))
  const store = await createStore(join(folder, 'ours.db'), all)
  const theirs = await createSqliteVecSearch(join(folder, 'vec.db'), all)
  const matrix = new Matrix(dimensions)
  for (const values of all) matrix.add(values)

  const queries = Array.from({ length: rounds + 5 }, () =>
    createNeighbour(all[Math.floor(random() * count)] as Float32Array, random),
  )
  const search = (values: Float32Array): Promise<readonly IndexHit[]> =>
    store.search({ scope }, { vector: { model, values }, limit: 10 })
  const queryAt = (round: number): Float32Array => queries[round] as Float32Array
  console.log(`\nfirst vector search, loads all vectors: ${Math.round(await measureMs(() => search(queryAt(0))))} ms`)
  const contenders: Contenders = {
    'store.search': (round) => measureMs(() => search(queryAt(round))),
    'bare scan': (round) => measureMs(() => matrix.scores(queryAt(round))),
    ...(theirs === undefined ? {} : { 'sqlite-vec': (round) => measureMs(() => theirs(queryAt(round))) }),
  }
  const targets: Target[] = [{ ours: 'store.search', peer: 'bare scan', atMost: 1.5 }]
  if (theirs !== undefined) targets.push({ ours: 'store.search', peer: 'sqlite-vec', atMost: 0.2 })
  report(
    `10 nearest of ${count} vectors, ms, ${rounds} queries`,
    await measureInterleaved(contenders, rounds, 5),
    targets,
  )
  if (theirs !== undefined) await compareResults(queries, search, theirs)
  await store.close()
}

async function compareResults(
  queries: readonly Float32Array[],
  search: (query: Float32Array) => Promise<readonly IndexHit[]>,
  theirs: Search,
): Promise<void> {
  let same = 0
  for (const query of queries) if ((await search(query)).map(toRow).join() === theirs(query).join()) same++
  console.log(`  same ten in the same order as sqlite-vec: ${same} of ${queries.length} queries`)
}
