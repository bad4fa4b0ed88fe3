import type { SdkErrorCode } from '@modelcontextprotocol/client'
import { MemoryError } from '../../domain/error.ts'
import { clip } from '../../text/clip.ts'
import { most, type ProviderConfig } from './config.ts'

const closed: `${SdkErrorCode.ConnectionClosed}` = 'CONNECTION_CLOSED'

/** Why a provider has nothing to say, in words for whoever configured it; what its configuration holds, which may be keys, is not repeated. */
export function whyOf(error: unknown, isLate: boolean, config: ProviderConfig): string {
  if (isLate) return 'timeout'
  if (error instanceof Error && 'code' in error && error.code === closed)
    return `it ended, or sent more than ${most.bytes} bytes, before it answered`
  const code = error instanceof MemoryError ? undefined : codeOf(error)
  if (code === 'ENOENT' || code === 'EACCES') return `it cannot be started (${code})`
  if (code !== undefined) return `it cannot be reached (${code})`
  return error instanceof Error ? clip(withoutSecrets(error.message, config), 200, '…') : 'an unknown fault'
}

/** On one line, so that what stands on several is found in it too, and without what a terminal would obey. */
const flat = (text: string): string => text.replaceAll(/[\s\p{Cc}]+/gu, ' ').trim()

function withoutSecrets(text: string, config: ProviderConfig): string {
  const secrets = secretsOf(config).filter((secret) => secret.length >= shortest)
  return secrets
    .sort((one, other) => other.length - one.length)
    .reduce((left, secret) => left.replaceAll(secret, '…'), flat(text))
}

/** What is shorter is no key, and may be part of any word. */
const shortest = 6

/** Whatever may be a key, or hold one among other things. */
function secretsOf(config: ProviderConfig): readonly string[] {
  if ('command' in config) return [...Object.values(config.env ?? {}), ...(config.args ?? [])].map(flat)
  const given = [config.url, ...Object.values(config.headers ?? {})]
  return given.flatMap((text) => [flat(text), ...text.split(/[\s/:@?&=#]+/)])
}

function codeOf(error: unknown): string | undefined {
  for (let at = error; at instanceof Error; at = at.cause)
    if ('code' in at && typeof at.code === 'string' && /^E[A-Z]+$|^UND_/.test(at.code)) return at.code
  return undefined
}
