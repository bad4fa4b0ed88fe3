import type { SdkErrorCode } from '@modelcontextprotocol/client'
import { MemoryError } from '../../domain/error.ts'
import { clip } from '../../text/clip.ts'
import { type ProviderConfig, providerLimits } from './config.ts'

const connectionClosed: `${SdkErrorCode.ConnectionClosed}` = 'CONNECTION_CLOSED'

/** Describes why a provider failed, for the operator. Configured values, which may be secrets, are masked. */
export function failureReason(error: unknown, isTimeout: boolean, config: ProviderConfig): string {
  if (isTimeout) return 'timeout'
  if (error instanceof Error && 'code' in error && error.code === connectionClosed)
    return `it exited, or sent more than ${providerLimits.maxMessageBytes} bytes, before it answered`
  const code = error instanceof MemoryError ? undefined : systemCodeOf(error)
  if (code === 'ENOENT' || code === 'EACCES') return `it cannot be started (${code})`
  if (code !== undefined) return `it cannot be reached (${code})`
  return error instanceof Error ? clip(maskSecrets(error.message, config), 200, '…') : 'unknown error'
}

/** Collapses whitespace and control characters, so that a secret is also found across lines. */
const toSingleLine = (text: string): string => text.replaceAll(/[\s\p{Cc}]+/gu, ' ').trim()

function maskSecrets(text: string, config: ProviderConfig): string {
  const secrets = secretsOf(config).filter((secret) => secret.length >= minSecretChars)
  return secrets
    .sort((one, other) => other.length - one.length)
    .reduce((masked, secret) => masked.replaceAll(secret, '…'), toSingleLine(text))
}

/** Shorter values are not secrets, and may be part of any word. */
const minSecretChars = 6

/** Lists all configured values that may be or contain a secret. */
function secretsOf(config: ProviderConfig): readonly string[] {
  if ('command' in config) return [...Object.values(config.env ?? {}), ...(config.args ?? [])].map(toSingleLine)
  const values = [config.url, ...Object.values(config.headers ?? {})]
  return values.flatMap((text) => [toSingleLine(text), ...text.split(/[\s/:@?&=#]+/)])
}

/** Finds a system or undici error code in the chain of causes. */
function systemCodeOf(error: unknown): string | undefined {
  for (let current = error; current instanceof Error; current = current.cause)
    if ('code' in current && typeof current.code === 'string' && /^E[A-Z]+$|^UND_/.test(current.code))
      return current.code
  return undefined
}
