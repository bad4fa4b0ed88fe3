/** A fact that a conversation states once, or states and later changes. */
export type FactTemplate = {
  readonly category: string
  readonly statement: string
  readonly reply: string
  /** The new statement; the answer is the new value. */
  readonly change?: string
  /** A message about something else with words of the query. It occurs several times with other values. */
  readonly distractor: string
  readonly query: string
  /** The query with hardly a word of the statement. */
  readonly paraphrase: string
  readonly answer: string
}

const personal = 'personal_fact'
const update = 'knowledge_update'

export const chatFacts: readonly FactTemplate[] = [
  {
    category: personal,
    statement: 'Big news: my sister {sister} moved to {city} last week, she found a position at {job}.',
    reply: 'Wow, good for her! You must come along when I visit.',
    distractor: 'My sister and I spent the evening looking at pictures of every city we know, {city2} first.',
    query: 'Which city did the sister of Mara go to?',
    paraphrase: 'In which town does the sibling live now?',
    answer: '{city}',
  },
  {
    category: personal,
    statement: 'We finally adopted {animal} from the shelter and the kids call it {pet}.',
    reply: 'I need photos right away!',
    distractor: 'The children at {job} asked why an animal has a name at all.',
    query: 'What did the children name the animal they adopted?',
    paraphrase: 'What is the family pet called?',
    answer: '{pet}',
  },
  {
    category: personal,
    statement: 'Please keep in mind for the dinner that I get a bad rash from {food}, even small amounts.',
    reply: 'Noted, I will leave it out.',
    distractor: 'For the dinner with {friend} I bought far too much food, a guest brought even more.',
    query: 'Which food gives the dinner guest a rash?',
    paraphrase: 'Is there anything that the visitor is allergic to?',
    answer: '{food}',
  },
  {
    category: personal,
    statement: 'I started learning {instrument} with a teacher who lives two doors down.',
    reply: 'So that is the noise I heard on the phone.',
    distractor: '{friend} is learning Danish with an app and says play comes before grammar.',
    query: 'What is Mara learning to play?',
    paraphrase: 'Which musical lessons did my friend take up?',
    answer: '{instrument}',
  },
  {
    category: personal,
    statement: 'Turning forty soon! The party is at my place on {month} {day}, bring a chair.',
    reply: 'I will be there, with two chairs.',
    distractor: 'The birthday party of {friend} was {mood}, with {dish} and no music.',
    query: 'When is the birthday party?',
    paraphrase: 'On what day do we celebrate her getting older?',
    answer: '{month} {day}',
  },
  {
    category: personal,
    statement: 'After the knee surgery the doctor said no running, so now I do {hobby} every {weekday} evening.',
    reply: 'Sounds like a fair exchange.',
    distractor: 'My knee is fine in the evening, it only complains when there is {weather}.',
    query: 'What does Mara do in the evening since the knee operation?',
    paraphrase: 'Which pastime replaced jogging after the injury?',
    answer: '{hobby}',
  },
  {
    category: update,
    statement: 'The wedding of {friend} will be on {month} {day}, they booked the old mill.',
    reply: 'Lovely place. I will look for a train.',
    change: 'They had to push the wedding back, the new date is {month2} {day2} because the mill was flooded.',
    distractor: 'At the wedding of my cousin nobody knew the date of the next bus home.',
    query: 'On what date is the wedding?',
    paraphrase: 'When do the couple marry?',
    answer: '{month2} {day2}',
  },
  {
    category: update,
    statement: 'My rent is {price} a month, which I can just about manage.',
    reply: 'That is steep for two rooms.',
    change: 'The landlord raised it, from now on I pay {price2} for the flat.',
    distractor: 'The landlord sends a letter each month, mostly about the stairs.',
    query: 'How much does the landlord ask for each month?',
    paraphrase: 'What does the apartment cost?',
    answer: '{price2}',
  },
  {
    category: update,
    statement: 'For the summer trip we agreed on {city}, the tickets come later.',
    reply: 'I have always wanted to see it.',
    change: 'Change of plan for the summer trip: {city2} instead, the ferry was half the price.',
    distractor: 'Last summer was {mood}, we were going nowhere because of {weather}.',
    query: 'Where are we going in summer?',
    paraphrase: 'What is the destination of our holiday?',
    answer: '{city2}',
  },
]

export const supportFacts: readonly FactTemplate[] = [
  {
    category: 'case_fact',
    statement: 'My order number is {order}, I bought it as a gift for my father.',
    reply: 'Thank you, I have opened the order.',
    distractor: 'The gift card has a number too, but I threw the card away.',
    query: 'What is the number of the purchase that was a gift?',
    paraphrase: 'Under which reference was the present bought?',
    answer: '{order}',
  },
  {
    category: 'case_fact',
    statement: 'When I hold the button for ten seconds, the display says {code} and then it turns off.',
    reply: 'That helps, I will note it for the technicians.',
    distractor: 'The display has a button for the code of the language, I left it on English.',
    query: 'Which code did the screen display when the button was held?',
    paraphrase: 'What error came up during the reset?',
    answer: '{code}',
  },
  {
    category: 'case_fact',
    statement: 'Nobody is home in the mornings, the driver can leave the parcel at {street} with my aunt.',
    reply: 'I have added the note for the driver.',
    distractor: 'The last delivery was dropped off on a {weekday}, that went well.',
    query: 'Where should the delivery be dropped off?',
    paraphrase: 'At which address may the driver leave the box?',
    answer: '{street}',
  },
  {
    category: update,
    statement: 'A technician can come on {weekday}, any time after lunch works.',
    reply: 'I have booked the visit for you.',
    change: 'Something came up at work, could the technician come on {weekday2} instead?',
    distractor: 'A technician on the phone told me that a visit takes about {count} minutes.',
    query: 'When does the technician visit?',
    paraphrase: 'On what day is the repair appointment?',
    answer: '{weekday2}',
  },
  {
    category: update,
    statement: 'We can offer you a refund of {price} for the trouble.',
    reply: 'I would have to think about that.',
    change: 'I talked to my supervisor: the refund we can offer is now {price2}, paid within a week.',
    distractor: 'The refund form asks how big the box was, I measured {count} centimetres.',
    query: 'How big is the refund?',
    paraphrase: 'What amount of money will the customer get back?',
    answer: '{price2}',
  },
]

export const assistantFacts: readonly FactTemplate[] = [
  {
    category: 'long_answer',
    statement: 'Can you plan a weekend course about {topic} for me, with all the details?',
    reply:
      'The group should not be larger than {count} people, since the room at {street} has only that many seats and everybody needs to see the table.',
    distractor: 'How many people take a course in {hobby} these days?',
    query: 'How many people fit into the room of the course?',
    paraphrase: 'What is the largest number of participants in the workshop?',
    answer: '{count}',
  },
  {
    category: 'long_answer',
    statement: 'Write me a long guide for making a lamp out of {metal}, please.',
    reply:
      'Let the lacquer dry for {count} hours before you wire anything, because the fumes attack the insulation of the cable.',
    distractor: 'How many hours a day should a desk lamp be on?',
    query: 'How many hours must the lamp dry?',
    paraphrase: 'What is the waiting time for the varnish of the light?',
    answer: '{count}',
  },
  {
    category: 'long_answer',
    statement: 'Compare the ways to heat a small greenhouse in winter for me, at length.',
    reply:
      'A buried pipe costs about {price} to install and pays for itself in {count} months if the soil stays moist.',
    distractor: 'What does a greenhouse on a balcony cost, roughly?',
    query: 'What does the buried pipe for the greenhouse cost?',
    paraphrase: 'How expensive is the underground tube that warms the plants?',
    answer: '{price}',
  },
]

export const codeFacts: readonly FactTemplate[] = [
  {
    category: 'project_fact',
    statement: 'Note that the staging database listens on port {port}, and only through the tunnel.',
    reply: 'Understood, I will use the tunnel.',
    distractor: 'The database migration on staging for src/{module}/schema.ts is still open.',
    query: 'How do I reach the database of staging?',
    paraphrase: 'What do I connect to for pre-production Postgres?',
    answer: '{port}',
  },
  {
    category: 'project_fact',
    statement: 'The regression came in with commit {hash}, everything before it was fast.',
    reply: 'I will compare the two versions.',
    distractor: 'Please commit src/{module}/{verb}.ts, even if the first run is slow.',
    query: 'Which commit made it slow?',
    paraphrase: 'When did performance get worse?',
    answer: '{hash}',
  },
  {
    category: 'project_fact',
    statement: 'Never write to {table} directly, the nightly job owns it and would overwrite your rows.',
    reply: 'Then I will go through the job.',
    distractor: 'The nightly job of {module} wrote a table of {count} warnings into the log.',
    query: 'Which table belongs to the nightly job?',
    paraphrase: 'What must not be modified by hand?',
    answer: '{table}',
  },
  {
    category: update,
    statement: 'The request timeout is {ms} milliseconds for now.',
    reply: 'That is short, but fine.',
    change: 'I raised the request timeout to {ms2} milliseconds after the complaints.',
    distractor: 'A timeout in test/{module}/{verb}.test.ts made the call of {verb}{noun} flaky.',
    query: 'How long is the timeout of a call?',
    paraphrase: 'After what time does the client give up?',
    answer: '{ms2}',
  },
]
