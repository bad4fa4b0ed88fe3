import { setImmediate as pause } from 'node:timers/promises'
import { weighed } from '../context/render.ts'
import type { Message, Said } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import type { Key } from '../domain/key.ts'
import type { Clock, Tokenizer } from '../domain/ports.ts'
import type { Barrier } from '../memory/secretMasker.ts'
import type { Batch, Catalogue } from './catalogue.ts'
import { type Chunk, contentOf, Packer } from './chunk.ts'
import type { Kind, Upload } from './kind.ts'
import type { Reader } from './reader.ts'
import type { Portion } from './readerProcess.ts'
import type { FileInfo } from './record.ts'

type Means = {
  readonly catalogue: Catalogue
  readonly reader: Reader
  readonly tokenizer: Tokenizer
  readonly barrier: Barrier | undefined
  readonly clock: Clock
  /** Told of chunks as soon as they are stored. */
  readonly onStored: ((key: Key, epoch: number, stored: readonly Message[]) => void) | undefined
}

/** A file that was entered and is now to be indexed. */
export type Entered = {
  readonly key: Key
  readonly id: string
  readonly name: string
  readonly kind: Kind
  readonly file: Upload
}

/** Reads files and stores what they say, chunk by chunk. */
export class Indexer {
  private readonly means: Means

  constructor(means: Means) {
    this.means = means
  }

  /** Resolves when all of a file can be found. If that fails nothing of it can, and its record says why. */
  async index(entered: Entered, onProgress: (info: FileInfo) => void): Promise<FileInfo> {
    const { catalogue, barrier } = this.means
    const { key, id } = entered
    try {
      return await this.stored(entered, onProgress)
    } catch (error) {
      const why = error instanceof MemoryError ? error.message : 'It could not be stored. Upload it again.'
      // A store that fails here as well leaves it to whoever cleans up.
      await catalogue.fail(key, id, why).catch(() => undefined)
      throw error
    } finally {
      // Nobody is shown what stands behind a mark in a file: its values are not held.
      barrier?.drop(key.scope, key.id)
    }
  }

  private async stored(
    { key, id, name, kind, file }: Entered,
    onProgress: (info: FileInfo) => void,
  ): Promise<FileInfo> {
    const { catalogue, reader, tokenizer, onStored } = this.means
    let info = await catalogue.takeUp(key, id)
    if (info === undefined) throw removed()
    const packer = new Packer((text) => tokenizer.count(text))
    let read = 0
    for await (const portion of reader.read(kind, file)) {
      const append: Said[] = []
      let bare = 0
      for (const chunk of packed(packer, portion)) {
        append.push(await this.said(key, name, chunk))
        if (chunk.place === '') bare++
        read += chunk.body.length
        // Others get their turn after each one.
        await pause()
      }
      const added = await catalogue.add(key, id, {
        append,
        bare,
        known: knownOf(portion, info.done + append.length, read),
      })
      if (added === undefined) throw removed()
      onStored?.(key, added.epoch, added.stored)
      onProgress(added.info)
      info = added.info
    }
    return info
  }

  /** A chunk as a message, without its secrets. */
  private async said(key: Key, name: string, { place, body }: Chunk): Promise<Said> {
    const { barrier, tokenizer, clock } = this.means
    const masked = async (text: string): Promise<string> => (await barrier?.text(key, text)) ?? text
    // Each for itself: a heading says nothing about the first words below it.
    const content = contentOf({ place: await masked(place), body: await masked(body) })
    return weighed(tokenizer, { at: clock(), role: 'tool', name, content })
  }
}

/** The chunks that are complete with a portion, made as they are asked for. */
function* packed(packer: Packer, { pieces, isLast }: Portion): Generator<Chunk> {
  for (const piece of pieces) yield* packer.take(piece)
  if (isLast) yield* packer.rest()
}

/** What is known of a file with a portion of it: how many chunks there will be is told by those so far. */
function knownOf({ characters, isLast }: Portion, done: number, read: number): Batch['known'] {
  return {
    characters,
    chunks: isLast || read === 0 ? done : Math.ceil((done * characters) / read),
    status: isLast ? 'ready' : 'indexing',
  }
}

const removed = (): MemoryError =>
  new MemoryError('erased', 'The file was removed while it was being indexed. Upload it again if it is still wanted.')
