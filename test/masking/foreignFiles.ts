import type { ForeignFormat } from '../../src/portable/format.ts'
import { user } from '../server/start.ts'

const message = (sender: string, text: string) => ({
  uuid: text,
  sender,
  text,
  content: [{ type: 'text', text }],
  created_at: '2026-01-02T03:04:05.678Z',
})

/** Files of other programs with a secret in every text. */
export const foreignFiles: Readonly<Record<ForeignFormat, (secret: string) => string>> = {
  chatgpt: (secret) =>
    JSON.stringify([
      {
        title: secret,
        conversation_id: 'g1',
        current_node: 'n1',
        mapping: {
          n1: {
            id: 'n1',
            message: { author: { role: 'user', name: secret }, content: { content_type: 'text', parts: [secret] } },
            children: [],
          },
        },
      },
    ]),
  claude: (secret) =>
    JSON.stringify([
      { uuid: 'c1', name: secret, chat_messages: [message('human', secret), message('assistant', secret)] },
    ]),
  openai: (secret) => JSON.stringify({ messages: [{ ...user(secret), name: secret }] }),
  'server-memory': (secret) =>
    [
      { type: 'entity', name: secret, entityType: secret, observations: [secret] },
      { type: 'relation', from: secret, to: secret, relationType: secret },
    ]
      .map((line) => JSON.stringify(line))
      .join('\n'),
}
