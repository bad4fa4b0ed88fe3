/** A pair of turns without facts that a question asks about. */
export type FillerTemplate = readonly [prompt: string, reply: string]

export const chatFiller: readonly FillerTemplate[] = [
  ['How was your {weekday}? Mine was {mood}, with {weather}.', 'Same here, {mood2}. I {chore} and fell asleep early.'],
  ['I cooked {dish} yesterday and burned half of it.', 'You should try {dish2}, nobody can burn that.'],
  ['Have you seen {film}? {friend} would not stop talking about it.', 'Not yet, maybe on {weekday} with {friend2}.'],
  ['{friend} called, it was a {mood} chat about nothing much.', 'Say hello from me next time. We met at {job} once.'],
  ['I {chore} today, my back hurts.', 'Then rest and have some {dish}, {weather} is coming anyway.'],
  ['There is a market on {weekday}, do you want to come?', 'Only if there is no {weather}. I am looking for a lamp.'],
  ['Somebody at {job} told me about {topic}.', 'I tried {topic2} once, it was {mood}.'],
  ['The bus was late again, I waited with {friend} for {count} minutes.', 'Take the tram, it is {mood} but on time.'],
  ['Do you still have my umbrella? The blue one.', 'I think {friend} took it home on {weekday}.'],
  ['I read a long article about {topic} in bed.', 'And? Was it {mood} or did you fall asleep?'],
]

export const supportFiller: readonly FillerTemplate[] = [
  ['My {device} {fault} since {weekday}.', 'I am sorry to hear that. Is the light on the back {light}?'],
  ['I unplugged it and waited for {count} seconds, it still {fault}.', 'Thank you for trying. Please check the cable.'],
  ['The light is {light} now, before it was {light2}.', 'That means the {device} is looking for an update.'],
  ['How long does {carrier} usually take?', '{carrier} needs two to four days, and there is a link in the mail.'],
  ['I read on the forum that the {device} often {fault}.', 'That was an older series, yours has a new part inside.'],
  ['Can I use it outdoors when there is {weather}?', 'It is better to keep it dry, the case is only splash proof.'],
  ['The app asks me for a password again.', 'Please open the settings and choose forget this {device}.'],
  ['Is there a shop where I can show it to somebody?', 'Our partners open from {weekday} to {weekday2}.'],
]

export const assistantFiller: readonly FillerTemplate[] = [
  ['Give me a few ideas about {topic} for a beginner.', 'Start small with {topic}, one hour on a {weekday} is enough.'],
  ['What should I cook when there is {weather}?', 'I would make {dish}, or {dish2} if you have more time.'],
  ['Is {hobby} a good idea for somebody with little time?', 'It can be, many people find {hobby} {mood} at first.'],
  ['Explain how {metal} reacts to water.', 'It depends on the air, but {metal} gets a dull film within {count} days.'],
  ['Which is better for a gift, {topic} or {hobby}?', 'A book about {topic} is safe, a course in {hobby} is bolder.'],
]

/** Sentences around the fact of a long answer. */
export const assistantPadding: readonly string[] = [
  'Think first about who it is for, since a family with children needs another rhythm than two friends on a {weekday}.',
  'Write a short list of the material and tick off everything that is in the house already.',
  'A common mistake is to begin with the nicest part and to leave the dull preparation for later.',
  'If you expect {weather}, move everything by a day and tell the others early.',
  'Good light matters more than expensive tools, so a place near a window is worth a lot.',
  'Somebody such as {friend} could take photos while you keep your hands free.',
  'Have {dish} ready for the break, because hungry people stop listening after a while.',
  'Compare at least three offers and do not trust the cheapest one without a reason.',
  'Clean up while you go, otherwise the last hour turns into a {mood} mess.',
  'Afterwards write down the three things that you would do differently next time.',
  'People who know {hobby} have an advantage here, since the movements are similar.',
  'Keep a spare part of {metal} around, it saves you a walk to the shop.',
]

export const codeFiller: readonly FillerTemplate[] = [
  [
    '{verb}{noun} in src/{module}/{verb}.ts throws when the {table} row is missing.',
    'I changed src/{module}/{verb}.ts so that {verb}{noun} returns undefined, and added test/{module}/{verb}.test.ts.',
  ],
  [
    'Please rename {verb}{noun} and update src/{module2}/index.ts.',
    'Done. src/{module2}/index.ts exports {verb2}{noun} now; {verb}{noun} is gone from src/{module}/{verb}.ts.',
  ],
  [
    'The query on {table} takes {ms} milliseconds, can we add an index?',
    'I added {table}_by_{module} and measured again: {ms2} milliseconds. See src/{module}/schema.ts.',
  ],
  [
    'Run the tests of {module} again.',
    '{count} passed, 1 failed in test/{module}/{verb}.test.ts: expected {verb}{noun} to read {table}.',
  ],
  [
    'Why does src/{module}/{verb}.ts import src/{module2}/{verb2}.ts?',
    'It needs {verb2}{noun2} for the rows of {table}. I can move that to src/{module}/shared_{verb2}.ts.',
  ],
]
