import type { Chance } from '../chance.js';
import type { TestTurn } from '../test-turn.js';
import type { ProcessClock } from '../timeline.js';

/**
 * An agent that does a bit of everything, at its own pace: accepts after a while, streams, uses a tool, comments, answers, ends;
 * hears `agent.stop`; and sometimes finishes a turn that was taken for lost.
 */
export function agentScript(clock: ProcessClock, dice: Chance): (turn: TestTurn) => void {
  let words = 0;
  const word = () => `word${++words}`;
  return (turn) => {
    const pause = (low: number, high: number, run: () => void) => void clock.after(dice.between(low, high), run);
    const steps: (() => void)[] = [];
    let message_id: string | undefined;
    const stream = () => {
      steps.push(() => {
        message_id = turn.start();
      });
      for (let n = dice.between(1, 5); n > 0; n--) steps.push(() => turn.delta(`${word()} `, message_id));
      steps.push(() => {
        turn.stop({ message_id: message_id!, final_text: `${turn.running.get(message_id!)!.text}(${word()})` });
        message_id = undefined;
      });
    };
    const tool = (index: number) => {
      steps.push(() => turn.toolStart(index, 'terminal', { preview: word() }));
      if (dice.happens(0.5)) steps.push(() => turn.toolProgress(index, word()));
      steps.push(() => turn.toolEnd(index, { output_preview: word() }));
    };
    if (dice.happens(0.3)) tool(0);
    if (dice.happens(0.2)) steps.push(() => turn.commentary(word()));
    if (dice.happens(0.8)) stream();
    else steps.push(() => turn.message(`whole ${word()}`));
    if (dice.happens(0.2)) tool(1);
    if (dice.happens(0.1)) stream();
    const outcome = dice.happens(0.1) ? 'failed' : 'completed';
    const finishesLate = dice.happens(0.5);

    const next = () => {
      if (turn.state === 'abandoned') {
        if (finishesLate && message_id !== undefined && turn.running.has(message_id))
          turn.stop({ message_id, final_text: `late ${word()}` });
        return;
      }
      if (turn.stopped) {
        if (message_id !== undefined) turn.stop({ message_id });
        return turn.end('cancelled');
      }
      const step = steps.shift();
      if (step === undefined) return turn.end(outcome, outcome === 'failed' ? { error: 'as the script says' } : {});
      step();
      pause(0, 60, next);
    };
    pause(0, 150, () => {
      if (turn.state !== 'offered') return;
      turn.accept();
      pause(0, 80, next);
    });
  };
}
