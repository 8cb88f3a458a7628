import { runAgent } from '@iris/agent-link';

const weather = new Map(Object.entries({ oslo: '−3 °C, snow', rome: '14 °C, sun' }));

const agent = runAgent({
  gateway: process.env.IRIS_GATEWAY_URL ?? 'ws://127.0.0.1:8080/agent',
  token: process.env.IRIS_AGENT_TOKEN ?? '',
  name: 'weather',
  commands: [{ name: '/cities', description: 'Where I have a thermometer', run: () => [...weather.keys()].join(', ') }],

  async onTurn(turn) {
    turn.reason('They ask about the weather; I need a city. ');
    let city = turn.message.text.trim().toLowerCase();
    if (!weather.has(city)) {
      const choices = [...weather.keys()].map((value) => ({ value, label: value }));
      const answer = await turn.ask.choice({ title: 'Which city?', choices, timeout_ms: 60_000 });
      if (answer.value === null) return turn.write('Another time, then.');
      city = answer.value;
    }

    const thermometer = turn.tool('thermometer', { preview: city, args: { city } });
    const reading = weather.get(city) ?? 'no idea';
    thermometer.end({ output_preview: reading });

    for (const word of `In **${city}**: ${reading}.`.split(/(?<= )/)) turn.write(word);
  },
});

process.once('SIGINT', () => agent.stop());
console.log('ended:', (await agent.stopped).reason);
