import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;

/** Counts words exactly once: reads `lines`, writes `counts`. */
public class StreamsCounts {
  public static void main(String[] arguments) throws Exception {
    Properties settings = new Properties();
    settings.put("bootstrap.servers", arguments[0]);
    settings.put("application.id", "counting");
    settings.put("state.dir", arguments[1]);
    settings.put("group.protocol", "streams");
    settings.put("processing.guarantee", "exactly_once_v2");
    settings.put("commit.interval.ms", "200");
    settings.put("num.stream.threads", "2");
    settings.put("replication.factor", "3");
    settings.put("default.key.serde", Serdes.StringSerde.class);
    settings.put("default.value.serde", Serdes.StringSerde.class);
    settings.put("consumer.auto.offset.reset", "earliest");
    StreamsBuilder builder = new StreamsBuilder();
    builder.<String, String>stream("lines")
        .flatMapValues(line -> Arrays.asList(line.split(" ")))
        .groupBy((key, word) -> word)
        .count()
        .toStream()
        .mapValues(String::valueOf)
        .to("counts");
    KafkaStreams streams = new KafkaStreams(builder.build(), settings);
    Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(20))));
    streams.start();
    Thread.sleep(Long.MAX_VALUE);
  }
}
