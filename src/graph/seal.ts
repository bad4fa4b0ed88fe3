import { createHmac, hash, hkdfSync } from 'node:crypto'
import { MemoryError } from '../domain/error.ts'
import { BoxKey, keyLength } from '../stores/encrypted/cipher.ts'

/** How what is said stands in the file, and by what it is looked up. */
export type Seal = {
  /** Whether the file can be searched by what is said. */
  readonly isPlain: boolean
  /** What a name of some kind is looked up by. */
  ref(kind: string, ...names: readonly string[]): string
  /** A text as it stands in the file, beside what it is bound to. */
  put(text: string, bound: string): string
  take(body: string, bound: string): string
  /** Overwrites the keys. */
  wipe(): void
}

/** Everything in the clear. */
export const plain: Seal = {
  isPlain: true,
  ref: (...names) => hash('sha256', JSON.stringify(names), 'buffer').subarray(0, 16).toString('base64url'),
  put: (text) => text,
  take: (body) => body,
  wipe: () => undefined,
}

/** Everything in boxes of AES-256-GCM, and names as keyed digests: nobody without the key can try out what they may be. */
export function sealed(secret: Uint8Array, workspace: string): Seal {
  const key = (use: string): Uint8Array =>
    new Uint8Array(hkdfSync('sha256', secret, '', `threadkeep graph ${use} 1`, keyLength))
  const [box, names] = [new BoxKey(key('content')), key('names')]
  return {
    isPlain: false,
    ref: (...parts) =>
      createHmac('sha256', names).update(JSON.stringify(parts)).digest().subarray(0, 16).toString('base64url'),
    put: (text, bound) => box.seal(text, bound),
    take: (body, bound) => {
      const text = box.open(body, bound)
      if (text !== undefined) return text.toString()
      throw new MemoryError(
        'corrupt',
        `A row of the graph of ${workspace} was changed, or moved from elsewhere. Bring back a backup, or forget the workspace.`,
      )
    },
    wipe: () => {
      box.wipe()
      names.fill(0)
    },
  }
}
