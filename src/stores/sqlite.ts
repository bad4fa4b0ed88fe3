import { resolve } from 'node:path'
import { type Message, messageId } from '../domain/entry.ts'
import { formatKey, type Key } from '../domain/key.ts'
import type { Index, Store } from '../domain/ports.ts'
import type { Change } from '../domain/session.ts'
import { Finder } from '../recall/find.ts'
import { connectReader, prepareFile } from './sqlite/connect.ts'
import { faultOf } from './sqlite/faults.ts'
import { Heads } from './sqlite/heads.ts'
import { Queue } from './sqlite/queue.ts'
import { Reader } from './sqlite/read.ts'
import { VectorReader } from './sqlite/vectors.ts'
import type { Written } from './sqlite/write.ts'

export type SqliteOptions = {
  /** Told of every entry that is found damaged and is taken out of the way. */
  readonly onWarning?: (warning: string) => void
}

/**
 * Sessions in one SQLite file. What is acknowledged is on the disk; several processes may share the file.
 *
 * @example
 * const memory = await openMemory({ store: sqliteStore('memory.db') })
 */
export function sqliteStore(file: string, { onWarning = () => undefined }: SqliteOptions = {}): Store & Index {
  const path = resolve(file)
  prepareFile(path)
  const database = connectReader(path)
  const queue = new Queue(path)
  const reader = new Reader(database, (key, id) => quarantine(key, id))
  const vectors = new VectorReader(database)
  const heads = new Heads(reader)
  const read = async <T>(from: () => T): Promise<T> => {
    try {
      return from()
    } catch (error) {
      throw faultOf(error, path)
    }
  }
  const finder = new Finder({
    changes: (where, since) => read(() => reader.changes(where, since)),
    indexed: (key, after, limit) => read(() => reader.indexed(key, after, limit)),
    derived: (key) => read(() => heads.head(key, 0).derived),
    pointed: (where, model, after, limit) => read(() => vectors.pointed(where, model, after, limit)),
    entries: (found) => read(() => found.map(({ key, id }) => reader.entry(key, id))),
  })
  const quarantine = (key: Key, id: string): void => {
    onWarning(`${id} of ${formatKey(key)} in ${path} is damaged. It was put aside; the rest of the session is sound. threadkeep doctor tells more.`)
    heads.drop(key)
    queue.submit({ quarantine: [id], key, why: 'its checksum differs' }).catch((error: unknown) => onWarning(faultOf(error, path).message))
  }
  return {
    durability: 'durable',
    head: (key, recent) => read(() => heads.head(key, recent)),
    page: (key, range) => read(() => heads.page(key, range)),
    list: (filter) => read(() => reader.list(filter)),
    search: (where, query) => finder.search(where, query),
    changes: (where, since) => read(() => reader.changes(where, since)),
    unembedded: (model, after, limit) => read(() => vectors.unembedded(model, after, limit)),
    embedded: (model) => read(() => vectors.embedded(model)),
    commit: async (change) => {
      const { written } = (await queue.submit({ commit: change })) as { written: Written }
      if (written.isNew) return appended(change, written)
      return heads.page(change.key, { after: written.first - 1, before: written.last + 1, limit: written.last - written.first + 1 })
    },
    erase: async (key, only) => {
      finder.drop(key.scope)
      heads.drop(key)
      try {
        return ((await queue.submit({ erase: key, only })) as { gone: readonly string[] }).gone
      } finally {
        finder.drop(key.scope)
        heads.drop(key)
      }
    },
    embed: async (model, made) => ((await queue.submit({ embed: made, model })) as { kept: number }).kept,
    close: async () => {
      await queue.close()
      finder.clear()
      if (database.isOpen) database.close()
    },
  }
}

/** The messages a change became: the writer tells their places, the words are at hand. */
function appended({ append }: Change, { first, offset }: Written): readonly Message[] {
  let sum = offset
  return append.map((said, at) => {
    const message: Message = Object.freeze({ ...said, kind: 'message', id: messageId(first + at), sequence: first + at, offset: sum })
    sum += said.weight
    return message
  })
}
