import type { ConversationKind } from '../../src/evaluation/generate/generate.ts'
import type { KnowledgeInput } from '../../src/memory/knowledge.ts'

export const hourMs = 3_600_000

/** A session of the demo, and its generated conversation. Times are hours before the present. */
export type DemoSession = {
  readonly key: string
  readonly template: string
  readonly person?: string
  readonly metadata?: Readonly<Record<string, string | number>>
  readonly model: string
  readonly kind: ConversationKind
  readonly tokens: number
  readonly hours: readonly [from: number, to: number]
}

export const templates = {
  companion: { profile: 'thread', budget: 1_500 },
  coding: { profile: 'thread', budget: 2_000 },
  helpdesk: { profile: 'support', budget: 1_000, idle: '24h', preamble: 'You answer for the support team. Be brief.' },
  kiosk: { profile: 'ephemeral', budget: 500, idle: '12h' },
}

/** Sessions of the past weeks, in the durable store. */
export const earlierSessions: readonly DemoSession[] = [
  {
    key: 'acme:mara',
    template: 'companion',
    person: 'mara',
    metadata: { channel: 'app', plan: 'pro' },
    model: 'gpt-5.4-mini',
    kind: 'chat',
    tokens: 3_600,
    hours: [300, 40],
  },
  {
    key: 'acme:research',
    template: 'companion',
    metadata: { channel: 'web', plan: 'team' },
    model: 'gpt-5.4',
    kind: 'assistant',
    tokens: 2_600,
    hours: [200, 90],
  },
  {
    key: 'globex:repo-billing',
    template: 'coding',
    metadata: { channel: 'editor', repository: 'billing' },
    model: 'claude-sonnet-5',
    kind: 'code',
    tokens: 2_400,
    hours: [150, 50],
  },
]

/** Sessions of the last day and a half, in RAM. */
export const recentSessions: readonly DemoSession[] = [
  {
    key: 'acme:ticket-4711',
    template: 'helpdesk',
    person: 'jonas',
    metadata: { channel: 'web', priority: 2 },
    model: 'claude-sonnet-5',
    kind: 'support',
    tokens: 2_200,
    hours: [34, 2],
  },
  {
    key: 'acme:ticket-4712',
    template: 'helpdesk',
    metadata: { channel: 'mail', priority: 1 },
    model: 'claude-sonnet-5',
    kind: 'support',
    tokens: 1_000,
    hours: [5, 1],
  },
]

/** Statements that change, between the generated messages of `acme:mara`; hours before the present. */
export const changingStatements: readonly (readonly [hours: number, text: string])[] = [
  [290, 'Please remember: my favourite tea is Earl Grey.'],
  [270, 'Remember that my rent is $870 a month.'],
  [180, 'Remember that my rent is $915 a month now.'],
  [120, 'Please remember: my favourite tea is Darjeeling now.'],
  [60, 'Remember that my rent is $960 a month from March on.'],
]

export const operatorKnowledge = [
  { category: 'domain', key: 'opening hours', value: 'Monday to Friday, nine to five' },
  { category: 'domain', key: 'refunds', value: 'Within 30 days, with the order number', confidence: 0.9 },
  {
    category: 'user_preference',
    key: 'tone',
    value: 'Friendly, no exclamation marks',
    confidence: 0.7,
    session: 'mara',
  },
  { category: 'website_knowledge', key: 'checkout', value: 'The coupon field is below the total', confidence: 0.6 },
] as const

/** Claims of a model, which wait for approval. */
export const pendingKnowledge: readonly KnowledgeInput[] = [
  {
    category: 'domain',
    key: 'warranty',
    value: 'Two years from the date of the invoice',
    by: 'assistant',
    session: 'ticket-4711',
    messages: ['m6'],
  },
  {
    category: 'user_preference',
    key: 'delivery',
    value: 'Prefers parcels on Saturdays',
    by: 'assistant',
    session: 'mara',
    messages: ['m12'],
  },
  {
    category: 'error_pattern',
    key: 'error E42',
    value: 'Appears when the lid is open; closing it helps',
    by: 'assistant',
    session: 'ticket-4712',
    messages: ['m4'],
  },
]

export const files = [
  {
    name: 'handbook.md',
    type: 'text/markdown',
    text: `# Handbook

Orders ship from Rotterdam on weekdays. A parcel that is lost is replaced after ten working days.
Warranty claims need the serial number, which is on the lower side of the device.
`,
  },
  { name: 'prices.csv', type: 'text/csv', text: 'article,price\nlamp,12.00\nkettle,39.90\ndesk,240.00\n' },
  { name: 'broken.pdf', type: 'application/pdf', text: '%PDF-1.7\nThe rest of this file is missing.' },
] as const

export const questions = [
  'My API key is sk-proj-4f9aK2mQ7xLw0ZbT8vRn3yUe. What did we decide last?',
  'What do you know about me?',
  'Which date did we agree on?',
  'What was the last problem?',
]

const entity = (type: string, id: string, properties: Readonly<Record<string, string>> = {}) => ({
  type,
  id,
  properties,
})
const link = (from: string, type: string, to: string) => ({ from, type, to })

export const graph = {
  entities: [
    entity('person', 'Mara', { city: 'Utrecht', born: '1986' }),
    entity('person', 'Clara', { work: 'music school' }),
    entity('person', 'Jonas', { work: 'support' }),
    entity('person', 'Priya'),
    entity('person', 'Luis'),
    entity('person', 'Aylin', { work: 'warehouse' }),
    entity('place', 'Graz', { country: 'Austria' }),
    entity('place', 'Utrecht', { country: 'Netherlands' }),
    entity('place', 'Rotterdam', { country: 'Netherlands' }),
    entity('place', 'old mill', { rooms: '12' }),
    entity('event', 'wedding', { date: 'February 9' }),
    entity('event', 'summer trip', { date: 'August' }),
    entity('company', 'Acme', { founded: '1998' }),
    entity('product', 'lamp', { price: '12 euros' }),
    entity('product', 'kettle', { price: '39.90 euros' }),
    entity('document', 'handbook'),
  ],
  relationships: [
    link('Mara', 'sister_of', 'Clara'),
    link('Mara', 'lives_in', 'Utrecht'),
    link('Mara', 'friend_of', 'Jonas'),
    link('Mara', 'friend_of', 'Priya'),
    link('Mara', 'plans', 'summer trip'),
    link('Clara', 'lives_in', 'Graz'),
    link('Luis', 'knows', 'Clara'),
    link('Jonas', 'celebrates', 'wedding'),
    link('Jonas', 'works_at', 'Acme'),
    link('Aylin', 'works_at', 'Acme'),
    link('wedding', 'takes_place_at', 'old mill'),
    link('old mill', 'near', 'Utrecht'),
    link('Acme', 'ships_from', 'Rotterdam'),
    link('Acme', 'sells', 'lamp'),
    link('Acme', 'sells', 'kettle'),
    link('handbook', 'describes', 'Acme'),
  ],
}
