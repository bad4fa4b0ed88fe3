type Topic = 'greeting' | 'thanks' | 'wellbeing' | 'goodbye' | 'agreement'

/** Phrases of small talk and the reply to them, by language. */
const languages: readonly Readonly<Record<Topic, { readonly phrases: string; readonly reply: string }>>[] = [
  {
    greeting: {
      phrases: 'hi|hello|hey|hiya|howdy|greetings|good morning|good afternoon|good evening|good day',
      reply: 'Hello!',
    },
    thanks: { phrases: 'thanks|thank you|thx|ty|cheers|many thanks', reply: 'You are welcome.' },
    wellbeing: {
      phrases: 'how are you|how are you doing|how are things|how is it going|how’s it going|what’s up|how do you do',
      reply: 'All is well here. Tell me something to remember.',
    },
    goodbye: { phrases: 'bye|bye bye|goodbye|see you|see you later|good night|take care', reply: 'Goodbye!' },
    agreement: { phrases: 'ok|okay|great|nice|cool|fine|perfect|got it|all right|alright|good', reply: 'All right.' },
  },
  {
    greeting: { phrases: 'hallo|guten tag|guten morgen|guten abend|moin|servus|grüß gott|grüezi', reply: 'Hallo!' },
    thanks: { phrases: 'danke|danke schön|dankeschön|vielen dank|besten dank', reply: 'Gern geschehen.' },
    wellbeing: {
      phrases: 'wie geht es dir|wie geht es ihnen|wie geht’s|wie gehts|wie geht’s dir',
      reply: 'Alles in Ordnung. Erzähl mir etwas, das ich mir merken soll.',
    },
    goodbye: {
      phrases: 'tschüss|tschüs|auf wiedersehen|bis bald|bis später|gute nacht|ciao',
      reply: 'Auf Wiedersehen!',
    },
    agreement: { phrases: 'gut|alles klar|in ordnung|prima|passt', reply: 'Alles klar.' },
  },
  {
    greeting: { phrases: 'hola|buenos días|buenas tardes|buenas noches|buenas', reply: '¡Hola!' },
    thanks: { phrases: 'gracias|muchas gracias|mil gracias', reply: 'De nada.' },
    wellbeing: {
      phrases: 'cómo estás|cómo está|qué tal|cómo te va|como estas|que tal',
      reply: 'Todo bien. Cuéntame algo para recordar.',
    },
    goodbye: { phrases: 'adiós|adios|hasta luego|hasta pronto|hasta mañana', reply: '¡Adiós!' },
    agreement: { phrases: 'vale|de acuerdo|bien|perfecto|genial', reply: 'De acuerdo.' },
  },
  {
    greeting: { phrases: 'bonjour|bonsoir|salut|coucou', reply: 'Bonjour !' },
    thanks: { phrases: 'merci|merci beaucoup|merci bien', reply: 'Je vous en prie.' },
    wellbeing: {
      phrases: 'ça va|comment ça va|comment vas-tu|comment allez-vous|comment tu vas',
      reply: 'Tout va bien. Dites-moi quelque chose à retenir.',
    },
    goodbye: { phrases: 'au revoir|à bientôt|à plus tard|à demain|bonne nuit', reply: 'Au revoir !' },
    agreement: { phrases: 'd’accord|très bien|parfait|entendu', reply: 'D’accord.' },
  },
  {
    greeting: { phrases: 'hoi|goedemorgen|goedemiddag|goedenavond|goedendag|dag', reply: 'Hallo!' },
    thanks: { phrases: 'bedankt|dank je|dank je wel|dank u|dank u wel', reply: 'Graag gedaan.' },
    wellbeing: {
      phrases: 'hoe gaat het|hoe gaat het met je|hoe gaat het met u|hoe is het|alles goed',
      reply: 'Alles in orde. Vertel me iets om te onthouden.',
    },
    goodbye: { phrases: 'tot ziens|doei|tot later|tot straks|welterusten', reply: 'Tot ziens!' },
    agreement: { phrases: 'goed|prima|in orde|oké', reply: 'In orde.' },
  },
  {
    greeting: { phrases: 'olá|ola|oi|bom dia|boa tarde|boa noite', reply: 'Olá!' },
    thanks: { phrases: 'obrigado|obrigada|muito obrigado|muito obrigada', reply: 'De nada.' },
    wellbeing: {
      phrases: 'como vai|como está|como estás|tudo bem|como você está',
      reply: 'Tudo bem. Conte-me algo para lembrar.',
    },
    goodbye: { phrases: 'tchau|adeus|até logo|até amanhã|até breve', reply: 'Até logo!' },
    agreement: { phrases: 'certo|tá bom|está bem|perfeito', reply: 'Está bem.' },
  },
]

/** Replies by phrase. Of a phrase in several languages the first counts. */
const replies = new Map<string, string>()
for (const language of languages)
  for (const { phrases, reply } of Object.values(language))
    for (const phrase of phrases.split('|')) if (!replies.has(phrase)) replies.set(phrase, reply)

/** Replies to small talk. */
export const smallTalkReplies: ReadonlySet<string> = new Set(replies.values())

/** A longer message is more than small talk. */
const maxCharacters = 80
/** Words that may follow a phrase. */
const politeEnding = / (?:there|again|all|everyone|today|so much|very much|a lot|a bunch|then|now|and|you too)$/

/**
 * Returns the reply to a message that is nothing but small talk; undefined for any other message.
 *
 * @example
 * findSmallTalkReply('Thanks a lot!') // 'You are welcome.'
 */
export function findSmallTalkReply(message: string): string | undefined {
  if (message.length > maxCharacters) return undefined
  const parts = message
    .toLowerCase()
    .replaceAll("'", '’')
    .split(/[^\p{L}\p{M}’ -]+/u)
    .map((part) => part.trim().replaceAll(/\s+/g, ' '))
    .filter((part) => part !== '')
  const found = parts.map((part) => replies.get(part) ?? replies.get(part.replace(politeEnding, '')))
  return found.every((reply) => reply !== undefined) ? found.at(-1) : undefined
}
