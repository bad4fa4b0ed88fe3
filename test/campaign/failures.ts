import { hash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import type { Json } from '../../src/domain/entry.ts'
import { isObject } from '../../src/domain/error.ts'
import { root } from '../shape/source.ts'

/** A shrunk failure. A committed file is replayed by every test run. */
export type Failure = {
  readonly part: string
  readonly kind: string
  readonly detail: string
  /** Seed of the run that found it. */
  readonly seed: number
  readonly input: Json
}

const failuresFolder = join(root, 'test/campaign/failures')

/** Longer texts are compressed in the file. */
const maxPlainChars = 4_000

/** Writes a failure and returns the path of its file, which is the same for equal inputs. */
export function writeFailure(failure: Failure, folder = failuresFolder): string {
  mkdirSync(folder, { recursive: true })
  const id = hash('sha256', JSON.stringify([failure.part, failure.kind, failure.input])).slice(0, 12)
  const path = join(folder, `${failure.part}-${id}.json`)
  writeFileSync(path, `${JSON.stringify({ ...failure, input: packTexts(failure.input) }, null, 2)}\n`)
  return path
}

/** Reads all failures, by file name. */
export function readFailures(folder = failuresFolder): ReadonlyMap<string, Failure> {
  const names = readdirSync(folder).filter((name) => name.endsWith('.json'))
  return new Map(
    names.sort().map((name) => {
      const failure = JSON.parse(readFileSync(join(folder, name), 'utf8')) as Failure
      return [name, { ...failure, input: unpackTexts(failure.input) }]
    }),
  )
}

const mapFields = (value: Json, map: (value: Json) => Json): Json => {
  if (Array.isArray(value)) return value.map(map)
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, child]) => [name, map(child as Json)])) as Json
}

const packTexts = (value: Json): Json =>
  typeof value === 'string' && value.length > maxPlainChars
    ? { $gzip: gzipSync(Buffer.from(value, 'utf16le')).toString('base64') }
    : mapFields(value, packTexts)

const unpackTexts = (value: Json): Json =>
  isObject(value) && typeof value.$gzip === 'string'
    ? gunzipSync(Buffer.from(value.$gzip, 'base64')).toString('utf16le')
    : mapFields(value, unpackTexts)
