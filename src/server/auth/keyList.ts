import { z } from 'zod'
import { MemoryError } from '../../domain/error.ts'
import type { Kept } from './credential.ts'

const time = z.number().int()
const kept = z.strictObject({
  id: z.string().regex(/^[0-9A-Za-z]{8}$/),
  name: z.string(),
  scopes: z.array(z.string().regex(/^(?:\*|[\w+\-.@]{1,64})$/)).min(1),
  rights: z.enum(['use', 'admin']),
  createdAt: time,
  expiresAt: time.exactOptional(),
  revokedAt: time.exactOptional(),
  lastUsedAt: time.exactOptional(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
})
const list = z.strictObject({ format: z.literal('threadkeep-keys'), version: z.literal(1), keys: z.array(kept) })

/** Reads the text of a key file. One that is damaged in any way is refused as a whole: it must never count as one without keys. */
export function parseKeys(text: string, file: string): readonly Kept[] {
  const { data, error } = list.safeParse(jsonOf(text, file))
  if (error !== undefined)
    throw damaged(file, `${error.issues[0]?.path.join('.') || 'its beginning'} is not as it was written`)
  for (const field of ['id', 'sha256'] as const) {
    if (new Set(data.keys.map((key) => key[field])).size < data.keys.length)
      throw damaged(file, `two keys have the same ${field}`)
  }
  return data.keys
}

/** The text of a key file. */
export const formatKeys = (keys: readonly Kept[]): string =>
  `${JSON.stringify({ format: 'threadkeep-keys', version: 1, keys }, null, 2)}\n`

function jsonOf(text: string, file: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw damaged(file, 'it is not JSON', cause)
  }
}

const damaged = (file: string, why: string, cause?: unknown): MemoryError =>
  new MemoryError(
    'corrupt',
    `The key file ${file} is damaged: ${why}. Bring back a copy of it, or move it away and create new keys.`,
    { param: 'file', cause },
  )
