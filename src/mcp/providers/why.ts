import type { SdkErrorCode } from '@modelcontextprotocol/client'
import { MemoryError } from '../../domain/error.ts'
import { clip } from '../../text/clip.ts'
import { most } from './config.ts'

const closed: `${SdkErrorCode.ConnectionClosed}` = 'CONNECTION_CLOSED'

/** Why a provider has nothing to say, in words for whoever configured it; addresses and headers, which may hold keys, are not repeated. */
export function whyOf(error: unknown, isLate: boolean): string {
  if (isLate) return 'timeout'
  if (error instanceof MemoryError) return error.message
  if (error instanceof Error && 'code' in error && error.code === closed) return `it ended, or sent more than ${most.bytes} bytes, before it answered`
  const code = codeOf(error)
  if (code === 'ENOENT' || code === 'EACCES') return `it cannot be started (${code})`
  if (code !== undefined) return `it cannot be reached (${code})`
  return error instanceof Error ? clip(error.message.replaceAll(/\s+/g, ' '), 200, '…') : 'an unknown fault'
}

function codeOf(error: unknown): string | undefined {
  for (let at = error; at instanceof Error; at = at.cause) if ('code' in at && typeof at.code === 'string' && /^E[A-Z]+$|^UND_/.test(at.code)) return at.code
  return undefined
}
