import type { RecordedDialogue } from './recorded.ts'

export const lisbonTrip: RecordedDialogue = {
  name: 'a trip to Lisbon',
  turns: [
    [
      'user',
      'We want to visit Lisbon with my parents, five people in all. We fly from Leeds on 14 March and stay for six nights.',
    ],
    ['assistant', 'Lovely. Flights for five are about £620 in total. Do you prefer a hotel or an apartment?'],
    [
      'user',
      'An apartment in Alfama with a lift, because my mother Ruth cannot climb stairs. Up to £900 for the stay.',
    ],
    ['assistant', 'The apartment Casa Mirante costs £840 for six nights and has a lift.'],
    ['user', 'Book that. My father Alan wants to see the tile museum, and my mother would like the botanical garden.'],
    ['assistant', 'The tile museum is closed on Mondays; the botanical garden opens daily at 9 am.'],
    [
      'user',
      'Actually, the school changed its holidays. We have to move the trip: we fly on 21 March instead. Still six nights.',
    ],
    ['assistant', 'I moved the flights to 21 March. The apartment is free then, for the same price.'],
    ['user', 'Great. No seafood restaurants please, our son Max is allergic to shellfish.'],
    ['assistant', 'Noted. I suggest Taberna Sol for the first evening, a table for five at 19:30.'],
    ['user', 'Perfect. And we do not need a rental car.'],
  ],
  outputs: [
    {
      manner: 'plain narrative',
      reply:
        'Five people fly from Leeds to Lisbon on 21 March (moved from 14 March) for six nights. Flights are about £620 and the apartment Casa Mirante in Alfama, with a lift because Ruth cannot climb stairs, costs £840. Alan wants to see the tile museum, which is closed on Mondays, and Ruth the botanical garden. No seafood restaurants, since Max is allergic to shellfish. Taberna Sol is suggested for the first evening at 19:30, a table for five. They do not need a rental car.',
    },
    {
      manner: 'a derived total',
      reply:
        'The family of five travels from Leeds to Lisbon on March 21st for 6 nights. Flights (£620) and the apartment Casa Mirante (£840, with a lift, as Ruth cannot climb stairs) cost £1,460 in total. Wishes: tile museum for Alan, botanical garden for Ruth. Max is allergic to shellfish, so no seafood restaurants. Dinner at Taberna Sol at 7:30 pm on the first evening. No rental car needed.',
    },
    {
      manner: 'chatty opening and bullets',
      reply: `Certainly! Here's a summary of the trip planning:

• Lisbon from Leeds, 5 people, 6 nights, departing 21/03 (was 14/03)
• Casa Mirante in Alfama, £840, lift required because Ruth cannot climb stairs
• Flights about 620 pounds
• Alan: tile museum (closed Mondays); Ruth: botanical garden (opens 9:00)
• No seafood: Max is allergic to shellfish
• Taberna Sol, table for five at 19:30
• No rental car

Would you like me to add anything?`,
    },
    {
      manner: 'quoted text',
      reply:
        '"Five people fly from Leeds to Lisbon on 21 March instead of 14 March and stay six nights in Casa Mirante (£840, lift for Ruth, who cannot climb stairs). Alan would like the tile museum and Ruth the botanical garden. No seafood restaurants because Max is allergic to shellfish. No rental car. Dinner at Taberna Sol, 19:30."',
    },
    {
      manner: 'a return date that follows from the nights',
      reply:
        'The family flies from Leeds to Lisbon on 21 March and stays six nights at Casa Mirante in Alfama (£840, with a lift for Ruth, who cannot climb stairs), so they leave on 27 March.',
      second:
        'The family of five flies from Leeds to Lisbon on 21 March, not on 14 March, and stays six nights at Casa Mirante in Alfama (£840, with a lift for Ruth, who cannot climb stairs). Alan wants to see the tile museum and Ruth the botanical garden. No seafood, since Max is allergic to shellfish, and no rental car. Taberna Sol is planned at 19:30.',
    },
    {
      manner: 'the former date',
      unfaithful: 'stale value',
      reply:
        'Five people fly from Leeds to Lisbon on 14 March and stay six nights at Casa Mirante in Alfama (£840, with a lift because Ruth cannot climb stairs). Alan wants to see the tile museum and Ruth the botanical garden. No seafood restaurants, since Max is allergic to shellfish. They do not need a rental car.',
    },
    {
      manner: 'dates in the wrong order',
      unfaithful: 'stale value',
      reply:
        'Five people fly from Leeds to Lisbon on 14 March (originally 21 March) and stay six nights at Casa Mirante in Alfama (£840, with a lift because Ruth cannot climb stairs). Alan wants to see the tile museum and Ruth the botanical garden. No seafood restaurants, since Max is allergic to shellfish. They do not need a rental car.',
    },
    {
      manner: 'parents swapped',
      unfaithful: 'swapped person',
      reply:
        'Five people fly from Leeds to Lisbon on 21 March and stay six nights at Casa Mirante in Alfama (£840). It has a lift because Alan cannot climb stairs. Ruth wants to see the tile museum. No seafood restaurants, since Max is allergic to shellfish. They do not need a rental car.',
    },
    {
      manner: 'prices swapped',
      unfaithful: 'swapped value',
      reply:
        'Five people fly from Leeds to Lisbon on 21 March for six nights. Flights are about £840 in total. The apartment Casa Mirante in Alfama costs £620 and has a lift because Ruth cannot climb stairs. Alan wants to see the tile museum. No seafood restaurants, since Max is allergic to shellfish. They do not need a rental car.',
    },
    {
      manner: 'a wrong number of guests',
      unfaithful: 'wrong number',
      reply:
        'The family flies from Leeds to Lisbon on 21 March, eight people in all, and stays six nights at Casa Mirante in Alfama (£840, with a lift because Ruth cannot climb stairs). Alan wants to see the tile museum and Ruth the botanical garden. No seafood restaurants, since Max is allergic to shellfish. They do not need a rental car.',
    },
    {
      manner: 'about another city',
      unfaithful: 'off topic',
      reply:
        'Berlin is the capital of Germany and has many interesting sights such as the Brandenburg Gate, several lakes and a lively music scene. Visitors should buy a day pass for public transport and bring comfortable shoes, because distances between districts are long.',
    },
  ],
}

export const summerParty: RecordedDialogue = {
  name: 'a party planned by three people',
  turns: [
    [
      'Anna',
      'Hi both. The summer party is on Saturday, 11 July, in the garden of the library. I will bake two cakes and bring the plates.',
    ],
    ['Ben', 'I can rent the sound system from Tonhalle, it costs 120 euros for the day. I also collect the money.'],
    ['Carla', 'I take care of the drinks: 40 bottles of water and 24 of lemonade. My brother lends us his van.'],
    ['Anna', 'Nice. How many guests are coming?'],
    ['Ben', 'So far 65 have answered. Every guest pays 8 euros.'],
    ['Carla', 'Please do not buy plastic cups, I will borrow glasses from the parish.'],
    ['Anna', 'The library wants everyone out by 22:00, and no music after 21:00.'],
    [
      'Ben',
      'Then I tell the band to start at 18:00. The band is called Blue Heron, and the singer is my colleague Omar.',
    ],
    ['Carla', 'Who puts up the tent? I cannot, my back hurts.'],
    ['Ben', 'Omar and I put up the tent on Friday afternoon.'],
    ['Anna', 'If it rains, we move into the hall. I have the key.'],
  ],
  outputs: [
    {
      manner: 'plain narrative',
      reply:
        'Anna, Ben and Carla plan the summer party on Saturday, 11 July, in the garden of the library. Anna bakes two cakes, brings the plates and has the key of the hall if it rains. Ben rents the sound system from Tonhalle for 120 euros and collects 8 euros from each guest; 65 have answered. Carla gets 40 bottles of water and 24 of lemonade and borrows glasses; no plastic cups. No music after 21:00, everyone out by 22:00. Blue Heron starts at 18:00. Ben and Omar put up the tent on Friday.',
    },
    {
      manner: 'bullets by person with totals',
      reply: `**Summary of the conversation**
- Date: Saturday 11 July, garden of the library; out by 10 pm, no music after 9 pm
- Anna: two cakes, plates, key of the hall for rain
- Ben: sound system from Tonhalle (€120), collects the money: 65 guests at 8 euros each, 520 euros in total
- Carla: 64 bottles altogether (40 water, 24 lemonade), glasses, no plastic cups, van of her brother
- Band Blue Heron starts at 6 pm; Ben and Omar put up the tent on Friday afternoon`,
    },
    {
      manner: 'terse notes',
      reply:
        'Party on 2026-07-11 in the library garden. Anna: cakes, plates. Ben: sound system (120 euros), money, tent with Omar. Carla: drinks, glasses, no plastic cups. Blue Heron at 18:00, no music after 21:00, out by 22:00.',
    },
    {
      manner: 'cakes and drinks swapped',
      unfaithful: 'swapped person',
      reply:
        'The summer party is on Saturday, 11 July, in the garden of the library. Carla bakes two cakes and brings the plates. Ben rents the sound system from Tonhalle for 120 euros and collects 8 euros per guest. Anna takes care of the drinks. No plastic cups, no music after 21:00, everyone out by 22:00. Ben and Omar put up the tent on Friday.',
    },
    {
      manner: 'an unknown helper',
      unfaithful: 'invented name',
      reply:
        'The summer party is on Saturday, 11 July, in the garden of the library. Anna bakes two cakes, Ben rents the sound system from Tonhalle for 120 euros, and Carla takes care of the drinks. No plastic cups, no music after 21:00. The tent is put up by Ben and Stefan on Friday.',
    },
    {
      manner: 'another currency',
      unfaithful: 'wrong unit',
      reply:
        'The summer party is on Saturday, 11 July, in the garden of the library. Anna bakes two cakes, Ben rents the sound system from Tonhalle for 120 dollars, and Carla takes care of the drinks. No plastic cups, no music after 21:00, everyone out by 22:00. Ben and Omar put up the tent on Friday.',
    },
    {
      manner: 'times swapped',
      unfaithful: 'swapped value',
      reply:
        'The summer party is on Saturday, 11 July, in the garden of the library. Anna bakes two cakes, Ben rents the sound system from Tonhalle for 120 euros, Carla takes care of the drinks. No plastic cups. The library wants everyone out by 21:00. Ben and Omar put up the tent on Friday.',
    },
    {
      manner: 'politeness only',
      unfaithful: 'empty',
      reply: 'The user and the assistant talked.',
    },
  ],
}
