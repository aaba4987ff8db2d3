// Starts Apache Qpid Broker-J in this process: java -cp "lib/*" brokerj.java CONFIGURATION PORT FOLDER

import java.util.HashMap;
import java.util.Map;
import org.apache.qpid.server.SystemLauncher;

class BrokerJ {
  public static void main(String[] arguments) throws Exception {
    Map<String, String> context = new HashMap<>();
    context.put("qpid.amqp_port", arguments[1]);
    context.put("qpid.work_dir", arguments[2]);
    Map<String, Object> attributes = new HashMap<>();
    attributes.put("type", "Memory");
    attributes.put("initialConfigurationLocation", arguments[0]);
    attributes.put("startupLoggedToSystemOut", false);
    attributes.put("context", context);
    new SystemLauncher().startup(attributes);
  }
}
