type ChatMessage = { readonly role: string; readonly content: unknown }

/** Characters of a summary that fits most targets, and of the values that are repeated as facts. */
const summaryChars = 4_500
const valueChars = 200
const values = { facts: 200, preferences: 100, proposals: 8 }

/**
 * Replies to the requests of upkeep as a diligent model does: with what the conversation says, so that all checks of
 * the reply run. Returns undefined for other requests.
 */
export function replyToUpkeep(messages: readonly ChatMessage[]): string | undefined {
  const [system = '', user = ''] = [messages[0]?.content, messages[1]?.content].map(String)
  const data = /^<memory>\n([\s\S]*)\n<\/memory>$/m.exec(user)?.[1]?.replace(/^[\w ]{1,20}: /gm, '') ?? ''
  const statements = data
    .split(/[\n.;]/)
    .map((text) => text.trim().slice(0, valueChars))
    .filter((text) => text.length > 3)
  if (system.startsWith('Summarize this conversation'))
    return `${data.slice(0, summaryChars)}\n\nIMPORTANT DATA\n${JSON.stringify(toImportantData(statements))}`
  if (system.startsWith('You are extracting')) return JSON.stringify(toImportantData(statements))
  return system.startsWith('You review a finished task') ? JSON.stringify(toProposals(statements)) : undefined
}

const toImportantData = (statements: readonly string[]) => ({
  important_facts: statements.slice(0, values.facts),
  key_decisions: statements.slice(values.facts, 2 * values.facts),
  user_preferences: Object.fromEntries(
    statements.slice(0, values.preferences).map((text) => [text.split(' ')[0] ?? '', text]),
  ),
})

const toProposals = (statements: readonly string[]) =>
  statements
    .filter((text) => text.length >= 20)
    .slice(0, values.proposals)
    .map((value) => ({ category: 'domain', key: value.slice(0, 20), value, confidence: 0.6 }))
