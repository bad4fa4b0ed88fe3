import type { RecordedDialogue } from './recorded.ts'

export const hiring: RecordedDialogue = {
  name: 'the hiring of a designer',
  turns: [
    ['user', 'We are hiring a product designer for the Utrecht office. The salary is between 52,000 and 60,000 euros.'],
    ['assistant', 'I drafted the advertisement. Should it mention remote work?'],
    ['user', 'Yes, two days a week from home. Do not mention the bonus, it is not approved yet.'],
    ['assistant', 'Done. Where should it be published?'],
    ['user', 'On our website and on DesignJobs, which charges 395 euros for 30 days. Not on LinkedIn.'],
    ['assistant', 'So far there are 47 applications. Eleven of them match all requirements.'],
    [
      'user',
      'Invite the best four. Interviews are on 5 and 6 May, Marieke leads the first round and Sanjay gives the design task.',
    ],
    ['assistant', 'I invited Noor Visser, Tim Alders, Eva Lindqvist and Rahul Menon.'],
    ['user', 'Tim withdrew yesterday. Invite Chiara Rossi instead.'],
    ['assistant', 'Chiara Rossi is invited for 6 May at 14:00. The portfolio review takes 45 minutes.'],
    ['user', 'Good. The offer must go out by 15 May at the latest, and the start date is 1 July.'],
    ['assistant', 'I set reminders for both dates under the code HR-2231.'],
    ['user', 'The start date changed, it is 1 August now, because of the notice period.'],
  ],
  outputs: [
    {
      manner: 'plain narrative',
      reply:
        'The company is hiring a product designer in Utrecht for 52,000 to 60,000 euros, with two days a week from home. The bonus must not be mentioned because it is not approved yet. The advertisement is on the website and on DesignJobs (395 euros for 30 days), not on LinkedIn. Of 47 applications eleven match. Interviews are on 5 and 6 May; Marieke leads the first round and Sanjay gives the design task. Invited: Noor Visser, Eva Lindqvist, Rahul Menon and Chiara Rossi, who replaces Tim Alders. The offer goes out by 15 May, and the start is 1 August (HR-2231).',
    },
    {
      manner: 'bullets with a preamble',
      reply: `Here's a brief summary of the conversation:

- **Role:** product designer, Utrecht, €52k–60k, two remote days per week
- **Do not mention:** the bonus (not approved)
- **Channels:** website and DesignJobs (€395, 30 days); not LinkedIn
- **Candidates:** 47 applications, 11 match; Noor Visser, Eva Lindqvist, Rahul Menon, Chiara Rossi (instead of Tim Alders)
- **Interviews:** May 5 and 6, first round by Marieke, design task by Sanjay
- **Dates:** offer by 15/05, start 01/08 (HR-2231)`,
    },
    {
      manner: 'third person, past tense',
      reply:
        'The user asked for help with hiring a product designer for the Utrecht office. They decided on two days of remote work, did not want the bonus mentioned, and chose the website and DesignJobs over LinkedIn. Four candidates were invited to interviews on 5 and 6 May, with Chiara Rossi taking the place of Tim, who withdrew. The offer has to go out by 15 May at the latest. The start date moved from 1 July to 1 August because of the notice period.',
    },
    {
      manner: 'terse notes',
      reply:
        'Hiring product designer, Utrecht, 52,000-60,000 euros. No mention of bonus. Published on website and DesignJobs, not LinkedIn. Interviews 5 and 6 May. Offer by 15 May. Start 1 August instead of 1 July.',
    },
    {
      manner: 'a difference and a duration in hours',
      reply:
        'A product designer is hired for Utrecht; the salary range of 52,000 to 60,000 euros spans 8,000 euros. The bonus must not be mentioned. DesignJobs costs 395 euros; LinkedIn is not used. Eleven of the 47 applications match, so 36 do not. Marieke leads the first round on 5 and 6 May, Sanjay gives the design task, and the portfolio review takes 0.75 hours. Chiara Rossi was invited instead of Tim Alders. Offer by 15 May, start on 1 August.',
    },
    {
      manner: 'the former start date',
      unfaithful: 'stale value',
      reply:
        'The company is hiring a product designer in Utrecht for 52,000 to 60,000 euros, with two days a week from home. The bonus must not be mentioned. The advertisement is on the website and on DesignJobs, not on LinkedIn. Interviews are on 5 and 6 May with Marieke and Sanjay. Chiara Rossi was invited instead of Tim Alders. The offer goes out by 15 May, and the start date is 1 July.',
    },
    {
      manner: 'interviewers swapped',
      unfaithful: 'swapped person',
      reply:
        'The company is hiring a product designer in Utrecht for 52,000 to 60,000 euros, with two days a week from home. The bonus must not be mentioned. The advertisement is on the website and on DesignJobs, not on LinkedIn. Sanjay leads the first round on 5 and 6 May. Marieke gives the design task. Chiara Rossi was invited instead of Tim Alders. The offer goes out by 15 May, and the start date is 1 August.',
    },
    {
      manner: 'a channel that was excluded',
      unfaithful: 'dropped negation',
      reply:
        'The company is hiring a product designer in Utrecht for 52,000 to 60,000 euros, with two days a week from home. The advertisement is on the website, on DesignJobs and on LinkedIn. Interviews are on 5 and 6 May with Marieke and Sanjay. Chiara Rossi was invited, Tim Alders withdrew. The offer goes out by 15 May, and the start date is 1 August.',
    },
    {
      manner: 'a wrong salary',
      unfaithful: 'wrong number',
      reply:
        'The company is hiring a product designer in Utrecht for 52,000 to 65,000 euros, with two days a week from home. The bonus must not be mentioned. The advertisement is on the website and on DesignJobs, not on LinkedIn. Interviews are on 5 and 6 May with Marieke and Sanjay. Chiara Rossi was invited instead of Tim Alders. The offer goes out by 15 May, and the start date is 1 August.',
    },
    {
      manner: 'three days instead of two',
      unfaithful: 'wrong number',
      reply:
        'The company is hiring a product designer in Utrecht for 52,000 to 60,000 euros, with three days a week from home. The bonus must not be mentioned. The advertisement is on the website and on DesignJobs, not on LinkedIn. Interviews are on 5 and 6 May with Marieke and Sanjay. Chiara Rossi was invited instead of Tim Alders. The offer goes out by 15 May, and the start date is 1 August.',
    },
    {
      manner: 'the candidate who withdrew',
      unfaithful: 'stale value',
      reply:
        'The company is hiring a product designer in Utrecht for 52,000 to 60,000 euros. The bonus must not be mentioned. The advertisement is on the website and on DesignJobs, not on LinkedIn. Invited to the interviews on 5 and 6 May are Noor Visser, Tim Alders, Eva Lindqvist and Rahul Menon. The offer goes out by 15 May, and the start date is 1 August.',
    },
    {
      manner: 'dates of offer and interviews swapped',
      unfaithful: 'swapped value',
      reply:
        'The company is hiring a product designer in Utrecht for 52,000 to 60,000 euros. The bonus must not be mentioned. The advertisement is on the website and on DesignJobs, not on LinkedIn. Marieke leads the interviews on 15 May. Chiara Rossi was invited instead of Tim Alders. The offer must go out by 5 May at the latest, and the start date is 1 August.',
    },
  ],
}
