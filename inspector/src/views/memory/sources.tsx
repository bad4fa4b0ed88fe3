import type { Source } from '../../api/types.ts'
import { formatRoute } from '../../router.ts'

const maxListed = 4

/** Links to the messages that an entry comes from, with the part of the text. */
export function SourceLinks({ sessionKey, sources }: { sessionKey: string; sources: readonly Source[] }) {
  const scope = sessionKey.split(':')[0]
  const messages = sources.filter(({ message }) => /^m\d+$/.test(message))
  return (
    <span class="sources">
      {messages.slice(0, maxListed).map(({ message, session, span }) => (
        <a
          key={`${session} ${message} ${span}`}
          class="mono"
          href={formatRoute('conversation', session === undefined ? sessionKey : `${scope}:${session}`, {
            message,
            span: span?.join('-'),
          })}
        >
          {message}
        </a>
      ))}
      {messages.length > maxListed && <span class="muted">+{messages.length - maxListed}</span>}
      {messages.length === 0 && <span class="muted">stated by a caller</span>}
    </span>
  )
}
