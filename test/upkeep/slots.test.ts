import { describe, expect, it } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { currentFacts, factsAfter } from './conversationFacts.ts'

/** Statements, the facts that are current after the last one, and those that were current before it. */
const changes: readonly (readonly [texts: readonly string[], current: readonly string[], before: readonly string[]])[] =
  [
    [
      ["Let's go with Postgres", 'I changed my mind: use MySQL'],
      ['database: use MySQL'],
      ["database: Let's go with Postgres"],
    ],
    [
      ['We decided on MongoDB for the catalogue', 'Actually, switch to CouchDB'],
      ['database.catalogue: switch to CouchDB'],
      ['database.catalogue: We decided on MongoDB for the catalogue'],
    ],
    [
      ['We use pnpm', "We're switching to yarn"],
      ["package_manager: We're switching to yarn"],
      ['package_manager: pnpm'],
    ],
    [
      ['I prefer Python', "Let's use Kotlin"],
      ["programming_language: Let's use Kotlin"],
      ['programming_language: Python'],
    ],
    [['I prefer Python', "I'd rather use Rust"], ['programming_language: Rust'], ['programming_language: Python']],
    [
      ["Let's go with the Marriott", "On second thought, let's go with the Hilton"],
      [": let's go with the Hilton"],
      [": Let's go with the Marriott"],
    ],
    [
      ["Let's pick Harbour House", "Let's take Villa Rosa instead of Harbour House"],
      [": Let's take Villa Rosa instead of Harbour House"],
      [": Let's pick Harbour House"],
    ],
    [
      ['The deadline is 14 March.', 'The deadline has moved to 21 March.'],
      ['deadline: The deadline has moved to 21 March'],
      ['deadline: The deadline is 14 March'],
    ],
    [
      ['The deadline for the report is 14 March', 'Update: the deadline is now 21 March'],
      ['deadline.report: the deadline is now 21 March'],
      ['deadline.report: The deadline for the report is 14 March'],
    ],
    [['I live in Lisbon', 'We moved to Porto'], ['home: We moved to Porto'], ['home: I live in Lisbon']],
    [
      ['My phone number is 555 123 4567', 'my new number is 555 987 6543'],
      ['phone: my new number is 555 987 6543'],
      ['phone: My phone number is 555 123 4567'],
    ],
    [
      ['Tom is vegetarian', 'For the party: Tom told me he has gone vegan.'],
      ['tom.diet: For the party: Tom told me he has gone vegan'],
      ['tom.diet: Tom is vegetarian'],
    ],
    [
      ['Our guest list is 40 people', 'Update: 38 people are coming'],
      ['guests: 38 people are coming'],
      ['guests: Our guest list is 40 people'],
    ],
    [['Call me Sam', 'Actually, call me Samantha'], ['name: Samantha'], ['name: Sam']],
    [
      ['I work at Initech', 'I no longer work at Initech'],
      ['employer: I no longer work at Initech'],
      ['employer: I work at Initech'],
    ],
    [["I'm vegan", "I'm no longer vegan"], ['diet: no longer vegan'], ['diet: vegan']],
    [
      ['Our budget is 5,000 EUR', 'The budget has been raised to 6,500 EUR'],
      ['budget: The budget has been raised to 6,500 EUR'],
      ['budget: Our budget is 5,000 EUR'],
    ],
    [
      ['The meeting is on Monday at 10', 'The meeting was moved to Wednesday at 11'],
      ['meeting: The meeting was moved to Wednesday at 11'],
      ['meeting: The meeting is on Monday at 10'],
    ],
    [
      ['Please keep responses under 100 words', 'Keep answers under 200 words, please'],
      ['length: Keep answers under 200 words'],
      ['length: keep responses under 100 words'],
    ],
    [
      ["I'm allergic to peanuts", "I'm no longer allergic to peanuts"],
      ["allergy.peanuts: I'm no longer allergic to peanuts"],
      ["allergy.peanuts: I'm allergic to peanuts"],
    ],
  ]

describe('a new value for the same slot', () => {
  for (const [texts, current, before] of changes)
    verifies(['K-03', 'X-10'], `${JSON.stringify(texts.at(-1))} › supersedes the old one, which held before`, () => {
      expect(currentFacts(...texts)).toEqual(current)
      expect(factsAfter(texts.length - 1, ...texts)).toEqual(before)
    })

  it.each([
    [
      ["I'm allergic to peanuts", "I'm also allergic to latex"],
      ["allergy.peanuts: I'm allergic to peanuts", "allergy.latex: I'm also allergic to latex"],
    ],
    [
      ['I speak French', 'I speak Dutch'],
      ['language_spoken.french: I speak French', 'language_spoken.dutch: I speak Dutch'],
    ],
    [['I have two dogs, Rex and Bo'], [': I have two dogs, Rex and Bo']],
    [
      ['My dog is called Rex', 'My dog is called Bo'],
      ['dog.rex: My dog is called Rex', 'dog.bo: My dog is called Bo'],
    ],
    [
      ['The deadline for the essay is 3 May', 'The deadline for the thesis is 9 June'],
      ['deadline.essay: The deadline for the essay is 3 May', 'deadline.thesis: The deadline for the thesis is 9 June'],
    ],
    [
      ["Let's use Postgres for the orders", "Let's use MySQL for the reports"],
      ["database.orders: Let's use Postgres for the orders", "database.reports: Let's use MySQL for the reports"],
    ],
    [
      ['I live in Oslo', 'My brother Tom lives in Rome'],
      ['home: I live in Oslo', 'brother_tom.home: My brother Tom lives in Rome'],
    ],
    [
      ['My work phone is 555 111 2222', 'My home phone is 555 333 4444'],
      ['phone.work: My work phone is 555 111 2222', 'phone.home: My home phone is 555 333 4444'],
    ],
    [
      ['Never deploy on Fridays', "Please don't use jQuery"],
      ['constraints.deploy_fridays: Never deploy on Fridays', "constraints.jquery: don't use jQuery"],
    ],
  ])('with parallel values %j › keeps both', (texts, expected) => expect(currentFacts(...texts)).toEqual(expected))

  it('with a repetition in fewer words › keeps the value', () =>
    expect(currentFacts("We're on SQLite 3.39", 'The app uses SQLite')).toEqual(['database: SQLite 3.39']))
})

describe('extractFacts: slots', () => {
  it.each([
    ['My order number is BK-20418.', ['order_number: My order number is BK-20418']],
    ['Order number: BK-20418', ['order_number: Order number: BK-20418']],
    ["I don't want any semicolons", ["constraints.semicolons: I don't want any semicolons"]],
    ['No exclamation marks, please', ['constraints.exclamation_marks: No exclamation marks']],
    ['The app must work offline', ['constraints.offline: The app must work offline']],
    ['port 5433, host db-prod-2', ['port: port 5433', 'host: host db-prod-2']],
    ['set API_BASE=/v2/internal', ['environment.api_base: API_BASE=/v2/internal']],
    ['The config is in /etc/app/config.yml', ['config: The config is in /etc/app/config.yml']],
    ['You can reach me at ann@example.org', ['email: You can reach me at ann@example.org']],
    ['My address is 12 Elm Street, Springfield', ['address: My address is 12 Elm Street, Springfield']],
    ['I can spend up to 800 dollars', ['budget: I can spend up to 800 dollars']],
    ['We need to ship by 14 March', ['deadline.ship: We need to ship by 14 March']],
    [
      'I have a dentist appointment on Tuesday at 3pm',
      ['appointment.dentist: I have a dentist appointment on Tuesday at 3pm'],
    ],
    ['My wife Ana loves hiking', ['wife: My wife Ana']],
    ['My manager is Tom Reed', ['boss: My manager is Tom Reed']],
    ['My wife is allergic to shellfish', ['wife.allergy.shellfish: My wife is allergic to shellfish']],
    ['I take 50 mg of sertraline daily', ['medication.sertraline: I take 50 mg of sertraline daily']],
    ['I was diagnosed with asthma', ['condition.asthma: I was diagnosed with asthma']],
    ["We're on Node 22.4", ['runtime: Node 22.4']],
    [
      'The project uses Next.js 14 with TypeScript, deployed on Vercel',
      ['frontend_framework: Next.js 14', 'programming_language: TypeScript', 'cloud: Vercel'],
    ],
    ['lets go with sqlite', ['database: lets go with sqlite']],
    ['We take the Grand Hotel', ['hotel: We take the Grand Hotel']],
    ['My dentist is Dr. Okoro', ['doctor.okoro: My dentist is Dr. Okoro']],
    ['Our flight is on 3 May, sorry, 4 May.', ['flight: Our flight is on 3 May, sorry, 4 May']],
    ["Let's book the Ritz... no sorry, the Savoy.", [": Let's book the Ritz... no sorry, the Savoy"]],
    ['My budget is 100, I mean 120.', ['budget: My budget is 100, I mean 120']],
    ["I'm writing a thriller, working title Nightfall", ["project: I'm writing a thriller, working title Nightfall"]],
    ['There is a friend, Bo, who paints the covers.', ['friend.bo: a friend, Bo, who paints the covers']],
    ['It listens on port 9000, and redis is on port 6380', ['listening_port: listens on port 9000', 'port: port 6380']],
    ['Could you send the invoices by post?', ['constraints.send_invoices_post: send the invoices by post']],
    ['Can you pay me by bank transfer instead?', ['constraints.pay_bank_transfer_instead: pay me by bank transfer']],
    ['My son has a bad knee', ['son.condition.bad_knee: My son has a bad knee']],
    ['Mein Mann hat es mit dem Rücken.', ['husband.condition.rucken: Mein Mann hat es mit dem Rücken']],
    ['I’m allergic to nuts', ['allergy.nuts: I’m allergic to nuts']],
    [
      'I am passionate about creating safe, inclusive spaces',
      ['creating_spaces: passionate about creating safe, inclusive spaces'],
    ],
  ])('in %j › finds %j', (text, expected) => expect(currentFacts(text)).toEqual(expected))

  it.each([
    'The answer is 42.',
    'My problem is that Node 20 crashes',
    'The error is E1234',
    'I moved to the next step',
    'I work for five hours a day',
    'No problem.',
    'No tasks found',
    'This should be fine',
    'I have reduced it by 70%',
    'We take the bus every day',
    'The red room is free on 3 May',
    'Rome has a vegan bar',
    'Could you send me the file?',
  ])('in %j › finds nothing', (text) => expect(currentFacts(text)).toEqual([]))
})
